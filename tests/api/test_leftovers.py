"""The scanner finds a file in every store before its deletion and nothing after, whichever store was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from apps.conversations.eventlog import log_key
from apps.conversations.models import Message, Run
from apps.conversations.services import conversations, forgetting
from apps.core.ids import new_id
from apps.core.valkey import valkey
from apps.files import services, tasks
from apps.files.lifecycle import receipts
from apps.files.lifecycle.scanner import KEPT, Finding, leftovers, scan
from apps.files.models import DeletionReceipt, File, FileStage, StageName
from apps.files.pipeline import removal
from apps.files.pipeline.removal import prefix, stores
from apps.files.storage import storage
from apps.files.types import Retryable
from tests.factories.files import Caller, object_store
from tests.factories.leftovers import MARKERS, Spread, spread_file

pytestmark = pytest.mark.django_db(transaction=True)

EVERYWHERE = {
    "files_file.id", "files_file.name", "files_file.object_key", "files_file.same_as_id", "files_page.file_id",
    "files_page.text", "files_page.elements", "files_passage.file_id", "files_passage.text", "files_posting.file_id",
    "files_stage.file_id", "files_upload_part.file_id", "files_summary.file_id", "files_summary.sentences",
    "files_summary_section.file_id", "files_summary_section.text", "files_table.file_id", "files_table.columns",
    "conversations_message.file_ids",
    "conversations_message.text", "conversations_message.citations", "conversations_run.context",
}  # fmt: skip
# Where the scanner must see what a removal that forgets the store leaves behind; of tables, their `file_id`.
SEEN = {
    "objects": "/original",
    "references of copies": "files_file.same_as_id",
    "passages sent to models": "conversations_run.context",
    "quotes in answers": "conversations_message.citations",
    **{store.name: f"{store.model._meta.db_table}.file_id" for store in stores() if store.model},
}


@pytest.fixture
def caller(tmp_path: Path, settings: Any) -> Iterator[Caller]:
    settings.STATE_DIR = tmp_path / "state"
    with object_store(tmp_path / "state" / "objects") as base:
        yield Caller(base)


def places(found: list[Finding]) -> set[str]:
    return {finding.place for finding in found}


@contextmanager
def locked(message: Message) -> Iterator[None]:
    """Somebody else holds the message, as who copies its conversation does."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM conversations_message WHERE id = %s FOR NO KEY UPDATE", [message.id])
            yield
    finally:
        other.close()


def delete(caller: Caller, spread: Spread) -> None:
    assert caller.delete(f"/{spread.file.id}").status_code == 204
    tasks.purge(str(spread.file.id))
    # The other copy of the content is a file of its own and has the markers by right.
    for copy in File.objects.filter(deleted_at=None):
        services.delete_file(caller.actor, copy.id)
        tasks.purge(str(copy.id))


def test_it_is_found_everywhere_before_and_nowhere_after(caller: Caller) -> None:
    spread = spread_file(caller)
    before = scan(spread.file.id, MARKERS)
    assert places(before) >= EVERYWHERE
    assert {finding.store for finding in before} == {"database", "objects", "valkey", "disk"}
    assert log_key(spread.run_id) in places(before)
    assert {f"{prefix(spread.file)}/{name}" for name in ("original", "pages/1/1200.png", "tables/1.parquet")} <= places(
        before
    )

    delete(caller, spread)

    assert leftovers(spread.file.id, MARKERS) == []
    kept = [finding for finding in scan(spread.file.id, MARKERS) if finding.store == "database"]
    assert places(kept) == {
        "files_file.id", "files_deletion_receipt.id", "conversations_message.file_ids", "conversations_message.text",
    }  # fmt: skip
    assert all(finding.kept for finding in kept)
    answer = Message.objects.get(run_id=spread.run_id, role="assistant")
    assert MARKERS[0] in answer.text
    (citation,) = answer.citations
    assert (citation["n"], citation["page"], citation["file_id"], citation["text"]) == (1, 1, None, "")


@pytest.mark.parametrize("skipped", sorted(SEEN))
def test_it_goes_red_for_each_store_that_the_removal_forgets(caller: Caller, skipped: str) -> None:
    spread = spread_file(caller)
    file = spread.file
    services.delete_file(caller.actor, file.id)
    FileStage.objects.create(file=file, organization_id=file.organization_id, name=StageName.EMBED)
    with pytest.raises(Retryable):
        removal.purge(file.id, [store for store in stores() if store.name != skipped])
    assert any(SEEN[skipped] in place for place in places(leftovers(file.id)))
    tasks.purge(str(file.id))
    assert leftovers(file.id) == []


def test_quotes_go_from_every_copy_of_an_answer_and_other_files_keep_theirs(caller: Caller) -> None:
    """In more messages than one statement takes; of an answer that cites two files, the other's stay as they are."""
    spread = spread_file(caller)
    answer = Message.objects.get(run_id=spread.run_id, role="assistant")
    other = {**answer.citations[0], "n": 2, "file_id": str(new_id()), "file_name": "b.txt", "text": "of another file"}
    spoilt = {**answer.citations[0], "n": 3, "sql": MARKERS[0], "rows": [MARKERS[1]], "unsupported": ["42"]}
    Message.objects.bulk_create(
        Message(
            conversation_id=answer.conversation_id, organization_id=answer.organization_id, seq=100 + number,
            role="assistant", citations=[*answer.citations, other, spoilt],
        )
        for number in range(2 * forgetting.BATCH + 1)
    )  # fmt: skip
    copy = conversations.branch_conversation(caller.actor, id=answer.conversation_id, message_id=answer.id)

    delete(caller, spread)

    assert leftovers(spread.file.id, MARKERS) == []
    blank: dict[str, Any] = {"file_id": None, "file_name": "", "heading": "", "text": "", "boxes": []}
    kept = {key: answer.citations[0][key] for key in ("passage_id", "page", "table", "source", "attributed")}
    for message in Message.objects.filter(seq__gte=100):
        first, second, third = message.citations
        assert first == {"n": 1, "unsupported": [], **kept, **blank}
        assert second == other
        assert third == {"n": 3, "unsupported": ["42"], **kept, **blank}
    copied = Message.objects.get(conversation_id=copy["id"], role="assistant")
    assert copied.citations == [{"n": 1, "unsupported": [], **kept, **blank}]


def test_a_message_that_somebody_copies_is_not_waited_for(caller: Caller) -> None:
    spread = spread_file(caller)
    answer = Message.objects.get(run_id=spread.run_id, role="assistant")
    services.delete_file(caller.actor, spread.file.id)
    with locked(answer), pytest.raises(Retryable, match="quotes in answers"):
        removal.purge(spread.file.id)
    tasks.purge(str(spread.file.id))
    assert removal.leftovers(spread.file.id) == {}


def test_every_store_has_its_seeded_bug() -> None:
    assert set(SEEN) == {store.name for store in stores()}


def test_what_may_stay_is_named_as_the_database_names_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name || '.' || column_name FROM information_schema.columns")
        known = {place for (place,) in cursor.fetchall()}
    assert set(KEPT) <= known


def test_tables_of_tomorrow_are_looked_at_without_being_named(caller: Caller) -> None:
    spread = spread_file(caller)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE files_card (about uuid, columns jsonb, words text[], raw bytea)")
        cursor.execute(
            "INSERT INTO files_card VALUES (%s, '{}', '{}', ''), (NULL, %s, ARRAY[%s], %s)",
            [spread.file.id, f'["{MARKERS[0]}"]', MARKERS[1], MARKERS[0].encode()],
        )
    try:
        delete(caller, spread)
        names = ("about", "columns", "words")
        assert places(leftovers(spread.file.id, MARKERS)) == {f"files_card.{name}" for name in names}
        found = leftovers(spread.file.id, [MARKERS[0].lower()])
        assert {"files_card.columns"} <= places(found)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE files_card")


def test_other_places_where_something_could_stay(caller: Caller, tmp_path: Path) -> None:
    spread = spread_file(caller)
    delete(caller, spread)
    gone = spread.file.id
    storage().put(
        f"{spread.file.organization_id}/{new_id()}/stray", b"x" * 300_000 + MARKERS[0].encode(), content_type=""
    )
    valkey().hset("cache:answers", "q", f"about {MARKERS[1]}")
    valkey().zadd("index", {MARKERS[1]: 1})
    valkey().rpush("default", f'{{"body": "{MARKERS[0]}"}}')
    (tmp_path / "state" / "scratch").mkdir()
    (tmp_path / "state" / "scratch" / "page.txt").write_text(MARKERS[0])
    spread.log.write_text(f"text: {MARKERS[0]}")
    found = {(finding.store, finding.place.rsplit("/", 1)[-1]) for finding in leftovers(gone, MARKERS)}
    assert found == {
        ("objects", "stray"), ("valkey", "cache:answers"), ("valkey", "index"), ("valkey", "default"),
        ("disk", "page.txt"), ("disk", "worker.log"),
    }  # fmt: skip


def test_the_removal_waits_for_an_answer_that_may_hold_passages(caller: Caller) -> None:
    spread = spread_file(caller)
    Run.objects.filter(id=spread.run_id).update(state="running")
    services.delete_file(caller.actor, spread.file.id)
    tasks.purge(str(spread.file.id))
    assert set(removal.leftovers(spread.file.id)) == {"passages sent to models"}
    assert valkey().exists(log_key(spread.run_id)), "its readers go on reading"
    Run.objects.filter(id=spread.run_id).update(state="completed")
    tasks.purge(str(spread.file.id))
    assert removal.leftovers(spread.file.id) == {}
    run = Run.objects.get(id=spread.run_id)
    assert (run.context, run.prompt_token_ids) == (None, [])


def test_the_receipt_says_what_was_removed_and_cannot_be_made_up(caller: Caller) -> None:
    spread = spread_file(caller)
    file = spread.file
    path = f"/{file.id}/receipt"
    assert caller.get(path).status_code == 404
    services.delete_file(caller.actor, file.id)
    with pytest.raises(Retryable):  # a try that is broken off counts too
        removal.purge(file.id, [store for store in stores() if store.name == "pages"])
    assert caller.get(path).status_code == 404, "not before all is gone"
    tasks.purge(str(file.id))
    shown = caller.get(path).json()
    assert set(shown["removed"]) == set(SEEN) - {"stages"}
    assert (shown["removed"]["pages"], shown["bytes"]) == (2, file.size)
    assert Caller().get(path).status_code == 404

    receipt = DeletionReceipt.objects.get(id=file.id)
    assert receipts.is_genuine(receipt)
    receipt.removed["pages"] = 3
    assert not receipts.is_genuine(receipt)


def test_the_command_tells_an_operator(caller: Caller) -> None:
    spread = spread_file(caller)
    delete(caller, spread)
    out = StringIO()
    call_command("scan_leftovers", "--all-deleted", stdout=out)
    assert "Nothing is left." in out.getvalue()
    assert "kept, tombstone" in out.getvalue()
    storage().put(f"{prefix(spread.file)}/original", b"back", content_type="")
    with pytest.raises(SystemExit):
        call_command("scan_leftovers", "--file", str(spread.file.id), stdout=out, stderr=out)
    assert "LEFT" in out.getvalue()


def test_a_marker_that_would_be_found_anywhere_is_refused() -> None:
    with pytest.raises(ValueError, match="six characters"):
        scan(new_id(), ["the"])


def test_a_deletion_is_told_when_it_was(caller: Caller) -> None:
    spread = spread_file(caller)
    began = timezone.now()
    delete(caller, spread)
    receipt = receipts.get_receipt(caller.actor, spread.file.id)
    assert began <= receipt.deleted_at <= receipt.purged_at <= timezone.now()
