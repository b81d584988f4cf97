"""Deleting removes everything derived, in every store, and the verifier that says so can be wrong-footed by none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.utils import timezone

from apps.core.ids import new_id
from apps.core.valkey import valkey
from apps.files import extraction, indexing, services, tasks
from apps.files.access import access_file
from apps.files.models import File, FileStage, Page, Passage, Posting, StageName, Table
from apps.files.pipeline import leases, previews, removal, sweep
from apps.files.pipeline.leases import LeaseLost
from apps.files.pipeline.removal import STORES, leftovers
from apps.files.storage import storage
from apps.files.types import Retryable
from tests.factories import documents
from tests.factories.files import Caller, object_store
from tests.factories.summaries import make_summary

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["filesystem", "s3"])
def caller(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[Caller]:
    if request.param == "filesystem":
        with object_store(tmp_path) as base:
            yield Caller(base)
        return
    for name, value in request.getfixturevalue("s3").items():
        setattr(settings, name, value)
    settings.S3_PUBLIC_ENDPOINT = ""
    storage.cache_clear()
    storage().prepare(origins=["*"])  # type: ignore[attr-defined]
    yield Caller()
    storage.cache_clear()


def complete_file(caller: Caller) -> File:
    """A file that has left something in every store of this app."""
    file_id = caller.ingest("a.pdf", documents.short_pdf(2))["id"]
    assert caller.get(f"/{file_id}/pages/1/image").status_code == 200
    file = File.objects.get(id=file_id)
    make_summary(file, "Two pages about rivers.")
    place = {"first_row": 1, "last_row": 2, "first_column": 1, "last_column": 1}
    Table.objects.create(file=file, organization_id=file.organization_id, number=1, name="a", rows=2, size=1, **place)
    return file


def refer_to(file: File) -> File:
    """A copy that still names the file as the one it was copied from."""
    copy = File.objects.get(id=file.id)
    copy.id, copy.same_as_id = new_id(), file.id
    copy.save(force_insert=True)
    return copy


def test_deleting_leaves_nothing_in_any_store(caller: Caller) -> None:
    file, neighbour = complete_file(caller), complete_file(caller)
    refer_to(file)
    before = leftovers(file.id)
    assert set(before) == {store.name for store in STORES}, "the file must have been everywhere for this to mean much"
    kept = leftovers(neighbour.id)

    assert caller.delete(f"/{file.id}").status_code == 204
    tasks.purge(str(file.id))

    assert leftovers(file.id) == {}
    tombstone = File.objects.get(id=file.id)
    assert (tombstone.state, tombstone.name, tombstone.sha256, tombstone.error_message) == ("deleted", "", "", "")
    assert (tombstone.object_key, tombstone.unlocked_key) == ("", "")
    assert tombstone.purged_at is not None
    assert leftovers(neighbour.id) == kept


@pytest.mark.parametrize("skipped", [store.name for store in STORES])
def test_the_verifier_goes_red_for_each_store_that_is_skipped(tmp_path: Path, skipped: str) -> None:
    with object_store(tmp_path) as base:
        caller = Caller(base)
        file = complete_file(caller)
        refer_to(file)
        caller.delete(f"/{file.id}")
        FileStage.objects.create(file=file, organization_id=file.organization_id, name=StageName.EMBED)
        with pytest.raises(Retryable, match=skipped):
            removal.purge(file.id, [store for store in STORES if store.name != skipped])
        assert set(leftovers(file.id)) == {skipped}
        assert File.objects.get(id=file.id).purged_at is None, "must not count as removed"

        tasks.purge(str(file.id))
        assert leftovers(file.id) == {}


def test_every_table_that_holds_parts_of_files_is_a_store() -> None:
    holding = {
        model
        for model in apps.get_app_config("files").get_models()
        if any(field.name in ("file", "file_id") for field in model._meta.get_fields())
    }
    assert holding == {store.model for store in STORES} - {None}


def test_a_purge_whose_message_was_lost_is_done_by_the_sweep(caller: Caller) -> None:
    file = complete_file(caller)
    caller.delete(f"/{file.id}")
    valkey().flushall()
    assert sweep.sweep()["purges"] == 0
    File.objects.update(deleted_at=timezone.now() - 2 * sweep.PATIENCE)
    assert sweep.sweep()["purges"] == 1
    assert valkey().llen("default") == 1
    tasks.purge(str(file.id))
    assert sweep.sweep()["purges"] == 0


def test_deleting_an_unfinished_upload_removes_its_parts(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    caller.send_all(started["upload"], b"hello")
    file_id = UUID(started["file"]["id"])
    assert leftovers(file_id)["objects"] >= 1
    caller.delete(f"/{file_id}")
    tasks.purge(str(file_id))
    assert leftovers(file_id) == {}


def test_deleting_in_the_middle_of_parsing_leaves_nothing(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(6))["id"]
    tasks.verify(file_id)
    real, seen = indexing.index_page, []

    def delete_after_two(page_id: UUID) -> int:
        done = real(page_id)
        seen.append(page_id)
        return done

    fence = leases.fence

    def deleting_fence(held: Any) -> Any:
        if len(seen) == 2:
            seen.append(new_id())
            services.delete_file(caller.actor, file_id)
            tasks.purge(file_id)
        return fence(held)

    monkeypatch.setattr(indexing, "index_page", delete_after_two)
    monkeypatch.setattr(leases, "fence", deleting_fence)
    tasks.parse(file_id)

    assert len(seen) == 3, "nothing was written after the deletion"
    assert leftovers(UUID(file_id)) == {}
    assert not Page.objects.exists()
    assert not Passage.objects.exists()
    assert not Posting.objects.exists()


def test_a_picture_drawn_while_its_file_is_deleted_is_not_kept(caller: Caller) -> None:
    file = complete_file(caller)
    preview = previews.access_preview(caller.actor, file.id, 2, width=400)
    assert access_file(caller.actor, file.id) == file
    real = extraction.render_page

    def slow(*args: Any, **options: Any) -> bytes:
        png: bytes = real(*args, **options)
        services.delete_file(caller.actor, file.id)
        tasks.purge(str(file.id))
        return png

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extraction, "render_page", slow)
        previews.picture(preview)
    assert leftovers(file.id) == {}


def test_a_worker_that_lost_its_file_writes_nothing(caller: Caller) -> None:
    file_id = caller.upload("a.txt", b"text")["id"]
    held = leases.claim(UUID(file_id), StageName.VERIFY)
    assert held is not None
    caller.delete(f"/{file_id}")
    with pytest.raises(LeaseLost), leases.fence(held):
        pytest.fail("entered the fence of a deleted file")
