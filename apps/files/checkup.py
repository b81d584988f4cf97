"""Doctor's questions about files: how well the reader is shut in, what recognises scans, what embeds."""

from __future__ import annotations

from apps.core.checkup import Finding, ok, warn
from apps.files import extraction
from apps.files.extraction.ocr.recognise import tesseract
from apps.files.indexing.embedder import VERSION, EmbedderUnavailable, embed_question


def check() -> list[Finding]:
    return [_sandbox(), _recognition(), _embedder()]


def _sandbox() -> Finding:
    report = extraction.sandbox_report()
    layers = [f"network: {report.network}"]
    layers += [name for name, held in (("system calls", report.syscalls), ("files", report.files)) if held]
    found = f"{report.level} ({', '.join(layers)})"
    if report.level == "full":
        return ok("file sandbox", found)
    advice = (
        "Uploads are read with fewer layers of protection. A Linux kernel from 5.13 with Landlock and seccomp has all."
    )
    return warn("file sandbox", found, advice)


def _recognition() -> Finding:
    program = tesseract()
    if program:
        return ok("text in scans", f"tesseract ({program})")
    return warn("text in scans", "rapidocr", "It is four times slower than tesseract: apt install tesseract-ocr")


def _embedder() -> Finding:
    try:
        embed_question("ready?")
    except EmbedderUnavailable as error:
        advice = "Search goes by keywords alone. Install the dependencies anew: make setup"
        return warn("embeddings", f"unavailable: {error}"[:200], advice)
    return ok("embeddings", VERSION)
