"""Doctor's questions about files: how well the reader is shut in, what recognises scans, what embeds."""

from __future__ import annotations

from django.conf import settings

from apps.core.checkup import Finding, ok, warn
from apps.core.ids import new_id
from apps.core.valkey import valkey
from apps.files import extraction
from apps.files.extraction.ocr.recognise import tesseract
from apps.files.indexing import vectors_version
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.vectors import embed_question
from inference.client import read_records
from inference.protocol import Purpose


def check() -> list[Finding]:
    return [_sandbox(), _recognition(), _embedder(), *_idle()]


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
    advice = "Search goes by keywords alone. Install the dependencies anew: make setup"
    if settings.EMBEDDING_MODEL:
        advice = "Search goes by keywords alone and vectors wait. See docs/pooling.md, or unset PARLEY_EMBEDDING_MODEL."
    try:
        embed_question("ready?", user_id=new_id(), organization_id=new_id())
    except EmbedderUnavailable as error:
        return warn("embeddings", f"unavailable: {error}"[:200], advice)
    return ok("embeddings", vectors_version())


def _idle() -> list[Finding]:
    """Models for vectors that are served and that nothing makes use of."""
    ids = {record.card.id for record in read_records(valkey()) if record.card.purpose is Purpose.EMBEDDINGS}
    return [
        warn(f"model {id}", "served for embeddings and not used", f"Set PARLEY_EMBEDDING_MODEL={id}")
        for id in sorted(ids - {settings.EMBEDDING_MODEL})
    ]
