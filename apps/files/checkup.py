"""Doctor's questions about files: how well the reader is shut in, what recognises scans, embeds and reranks."""

from __future__ import annotations

from django.conf import settings

from apps.core.checkup import Finding, ok, warn
from apps.core.ids import new_id
from apps.core.valkey import valkey
from apps.files import extraction
from apps.files.extraction.ocr.recognise import tesseract
from apps.files.indexing import pooled, vectors_version, versions
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.vectors import embed_question
from apps.files.models import Sync
from apps.files.pipeline import reembedding
from inference.client import read_records
from inference.protocol import InferenceError, Purpose


def check() -> list[Finding]:
    return [_sandbox(), _recognition(), _embedder(), *_renewals(), *_reranker(), *_idle(), *_syncs()]


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
    return warn(
        "text in scans",
        "rapidocr",
        "It is four times slower than tesseract, and knows fewer languages: apt install tesseract-ocr",
    )


def _embedder() -> Finding:
    advice = "Search goes by keywords alone. Install the dependencies anew: make setup"
    if settings.EMBEDDING_MODEL:
        advice = "Search goes by keywords alone and vectors wait. See docs/pooling.md, or unset PARLEY_EMBEDDING_MODEL."
    try:
        vector = embed_question("ready?", user_id=new_id(), organization_id=new_id())
        current = versions.served()[0]
        versions.check(current.version, current.dimensions, len(vector))
    except EmbedderUnavailable as error:
        return warn("embeddings", f"unavailable: {error}"[:200], advice)
    return ok("embeddings", vectors_version())


def _renewals() -> list[Finding]:
    """Vectors of earlier models, which answer until they are made anew."""
    return [_renewal(renewal) for renewal in reembedding.renewals()]


def _renewal(renewal: reembedding.Renewal) -> Finding:
    found = f"{renewal.left:,} passages still have them"
    try:
        embed_question("ready?", user_id=new_id(), organization_id=new_id(), version=renewal.version)
    except EmbedderUnavailable as error:
        advice = "Until they are made anew, these passages are found by keywords alone. Serve that model meanwhile."
        return warn(f"vectors of {renewal.version}", f"{found}; unavailable: {error}"[:200], advice)
    return ok(f"vectors of {renewal.version}", f"{found}, and are used")


def _syncs() -> list[Finding]:
    """Folders that could not be kept in step."""
    advice = "Its files stay as they are. See docs/lifecycle.md, or `manage.py sync_folder --forget`."
    failed = Sync.objects.exclude(error="").order_by("location")[:20]
    return [warn("synced folder", f"{sync.location}: {sync.error}"[:200], advice) for sync in failed]


def _reranker() -> list[Finding]:
    if not settings.RERANK_MODEL:
        return []
    try:
        pooled.rerank("ready?", ["yes"], pooled.for_question(new_id(), new_id()))
    except InferenceError as error:
        advice = "Passages keep the order of the search. See docs/pooling.md, or unset PARLEY_RERANK_MODEL."
        return [warn("reranking", f"unavailable: {error}"[:200], advice)]
    return [ok("reranking", settings.RERANK_MODEL)]


def _idle() -> list[Finding]:
    """Pooling models that are served and that nothing makes use of."""
    used = {Purpose.EMBEDDINGS: settings.EMBEDDING_MODEL, Purpose.RERANK: settings.RERANK_MODEL}
    variable = {Purpose.EMBEDDINGS: "PARLEY_EMBEDDING_MODEL", Purpose.RERANK: "PARLEY_RERANK_MODEL"}
    cards = {record.card.id: record.card for record in read_records(valkey()) if record.card.purpose in used}
    return [
        warn(f"model {card.id}", f"served for {card.purpose} and not used", f"Set {variable[card.purpose]}={card.id}")
        for card in cards.values()
        if used[card.purpose] != card.id
    ]
