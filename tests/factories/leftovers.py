"""A file whose content has reached every store there is, and a removal that forgets one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings

from apps.conversations.eventlog import log_key, readers_key
from apps.conversations.models import Message, Run
from apps.conversations.runner.context import passages_event
from apps.conversations.services import finishing, posting, runs
from apps.conversations.types import RunResult, RunState
from apps.core.valkey import valkey
from apps.files.models import File, Table
from apps.files.pipeline import tabling
from apps.files.public import cite, search_passages
from apps.files.storage import storage
from tests.factories import documents
from tests.factories.conversations import claim, make_conversation, serve_model
from tests.factories.files import Caller
from tests.factories.summaries import make_summary

MARKERS = ("Quixotrellium", "Zanthoborough")


@dataclass(frozen=True, slots=True)
class Spread:
    """The file, and the run that was given its passages."""

    file: File
    run_id: UUID
    log: Path


def spread_file(caller: Caller) -> Spread:
    """Uploaded, read, drawn, embedded, summed up, copied, asked about: with its markers in passages and answer."""
    sentence = f"The {MARKERS[0]} of {MARKERS[1]} weighs 41 kilograms."
    body = documents.digital_pdf(2, facts=[documents.Fact(1, sentence, "", "")])
    file_id = caller.ingest(f"{MARKERS[0]}.pdf", body)["id"]
    assert caller.get(f"/{file_id}/pages/1/image").status_code == 200
    file = File.objects.get(id=file_id)
    make_summary(file, sentence)
    _make_table(file, sentence)
    assert File.objects.get(id=caller.ingest("again.pdf", body)["id"]).same_as_id == file.id
    log = Path(settings.STATE_DIR) / "logs" / "worker.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f'{{"event": "files.swept", "file_id": "{file_id}"}}\n')
    return Spread(file, _ask_about(caller, file, sentence), log)


def _make_table(file: File, cell: str) -> None:
    Table.objects.create(
        file=file, organization_id=file.organization_id, number=1, name="weights", rows=1, size=1,
        first_row=1, last_row=1, first_column=1, last_column=1,
        columns=[{"name": "weighs", "label": "Weighs", "type": "text", "samples": [cell]}],
    )  # fmt: skip
    storage().put(tabling.key(file, 1), cell.encode(), content_type="")


def _ask_about(caller: Caller, file: File, sentence: str) -> UUID:
    serve_model()
    conversation = make_conversation(caller.actor)
    question = posting.Question(conversation, uuid4(), "How heavy is it?", None, (file.id,), "auto")
    run_id: UUID = posting.post_message(caller.actor, question, key=None).view["run"]["id"]
    attempt = claim(run_id)
    found = search_passages(caller.actor, file_ids=[file.id], query=f"weight of {MARKERS[0]}")
    event = passages_event(found)
    context = {**event, "messages": [{"role": "user", "content": hit.text} for hit in found.hits]}
    assert runs.save_context(run_id, attempt, context=context, model="fake")
    valkey().xadd(log_key(run_id), {"f": str(event).encode(), "k": b""})
    valkey().sadd(readers_key(run_id), b"web:1:feed")
    text = f"{sentence} [1]"
    result = RunResult(
        RunState.COMPLETED, text, "stop", citations=cite(text, found.hits), model="fake", replica="fake-1", seq=3
    )
    assert finishing.finish_run(run_id, attempt, result, by="test") is not None
    Run.objects.filter(id=run_id).update(prompt_token_ids=[1, 2, 3])
    assert Message.objects.get(run_id=run_id, role="assistant").citations
    return run_id
