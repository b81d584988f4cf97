"""How long files take until they can be searched: noted once a file, told to Prometheus and to operators."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.files.models import File, FileState, Page, PageState, Passage
from apps.files.pipeline import freshness, progress
from apps.files.public import freshness_counts, recent_freshness
from apps.files.types import FIRST_PAGE, WHOLE_FILE, RecentFreshness
from tests.factories import documents
from tests.factories.files import Caller, drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path) as base:
        yield Caller(base)


def counted() -> dict[tuple[str, str], int]:
    """Files in each histogram."""
    return {(counts.what, counts.kind): counts.buckets[-1][1] for counts in freshness_counts()}


def row(caller: Caller, kind: str, first_s: float, whole_s: float, *, ago_s: float = 0.0) -> File:
    """A file that became searchable `ago_s` ago, so long after its upload."""
    done = timezone.now() - timedelta(seconds=ago_s)
    uploaded = done - timedelta(seconds=whole_s)
    return File.objects.create(
        organization_id=caller.actor.organization_id, owner_id=caller.actor.user_id, name="a", size=1,
        content_type="", kind=kind, object_key="k", state=FileState.READY, uploaded_at=uploaded,
        first_searchable_at=uploaded + timedelta(seconds=first_s), searchable_at=done,
    )  # fmt: skip


def test_the_times_are_those_of_the_pages_and_are_noted_once(caller: Caller) -> None:
    file = File.objects.get(id=caller.ingest("a.pdf", documents.digital_pdf(3))["id"])
    indexed = sorted(page.indexed_at for page in Page.objects.filter(file=file) if page.indexed_at)
    assert file.uploaded_at is not None
    assert (file.first_searchable_at, file.searchable_at) == (indexed[0], indexed[-1])
    assert file.uploaded_at < indexed[0] < indexed[-1]
    assert counted() == {(FIRST_PAGE, "pdf"): 1, (WHOLE_FILE, "pdf"): 1}

    Page.objects.filter(file=file).update(indexed_at=timezone.now())
    File.objects.filter(id=file.id).update(state=FileState.PROCESSING)
    progress.advance(file.id)
    again = File.objects.get(id=file.id)
    assert (again.state, again.searchable_at) == (FileState.READY, indexed[-1])
    assert counted() == {(FIRST_PAGE, "pdf"): 1, (WHOLE_FILE, "pdf"): 1}


def test_a_copy_counts_from_its_own_upload(caller: Caller) -> None:
    first = File.objects.get(id=caller.ingest("a.txt", b"The same words.")["id"])
    copy = File.objects.get(id=caller.ingest("b.txt", b"The same words.")["id"])
    assert copy.same_as_id == first.id
    assert first.searchable_at
    assert copy.uploaded_at
    assert copy.first_searchable_at
    assert first.searchable_at < copy.uploaded_at < copy.first_searchable_at
    assert counted() == {(FIRST_PAGE, "text"): 2, (WHOLE_FILE, "text"): 2}


def test_what_cannot_be_searched_is_not_counted_until_it_can(caller: Caller) -> None:
    failed = File.objects.get(id=caller.ingest("a.txt", b"  \n ")["id"])
    assert (failed.state, failed.searchable_at, counted()) == (FileState.FAILED, None, {})
    caller.post(f"/{failed.id}/retry")
    tried = File.objects.get(id=failed.id)
    assert tried.uploaded_at
    assert failed.uploaded_at
    assert tried.uploaded_at > failed.uploaded_at, "the time that its owner took is not the product's"


def test_a_page_that_is_read_later_does_not_move_the_clock(caller: Caller) -> None:
    file_id = File.objects.get(id=caller.ingest("a.pdf", documents.digital_pdf(2))["id"]).id
    Passage.objects.filter(file_id=file_id, page_number=2).delete()
    Page.objects.filter(file_id=file_id, number=2).update(state=PageState.FAILED, error_code="crashed")
    File.objects.filter(id=file_id).update(state=FileState.PARTIAL)
    before = File.objects.get(id=file_id)
    assert caller.post(f"/{file_id}/retry").status_code == 200
    drain(file_id)
    after = File.objects.get(id=file_id)
    assert after.state == FileState.READY
    assert (after.uploaded_at, after.searchable_at) == (before.uploaded_at, before.searchable_at)


def test_prometheus_reads_histograms_of_all_workers(caller: Caller) -> None:
    for seconds in ({FIRST_PAGE: 0.4, WHOLE_FILE: 5.0}, {FIRST_PAGE: 2.5, WHOLE_FILE: 9_000.0}):
        freshness._count("pdf", seconds)
    text = Client().get("/metrics").content.decode()
    name = "parley_file_first_page_searchable_seconds"
    lines = {f'{name}_bucket{{kind="pdf",le="0.5"}} 1.0', f'{name}_bucket{{kind="pdf",le="5.0"}} 2.0'}
    lines |= {f'{name}_sum{{kind="pdf"}} 2.9', f'{name}_count{{kind="pdf"}} 2.0'}
    name = "parley_file_searchable_seconds"
    lines |= {f'{name}_bucket{{kind="pdf",le="5.0"}} 1.0', f'{name}_bucket{{kind="pdf",le="1280.0"}} 1.0'}
    lines |= {f'{name}_bucket{{kind="pdf",le="+Inf"}} 2.0', f'{name}_count{{kind="pdf"}} 2.0'}
    assert lines <= set(text.splitlines())


def test_a_file_ends_as_ever_while_valkey_is_away(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody_listens = redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.2)
    monkeypatch.setattr(freshness, "valkey", lambda: nobody_listens)
    assert caller.ingest("a.txt", b"Words to be found.")["state"] == "ready"
    assert [found.files for found in recent_freshness()] == [1, 1], "the rows know"


def test_operators_see_the_recent_ones_by_kind(caller: Caller) -> None:
    assert recent_freshness() == []
    for number in range(1, 101):
        row(caller, "pdf", number / 100, float(number))
    row(caller, "text", 7.0, 8.0)
    File.objects.filter(kind="pdf").update(deleted_at=timezone.now(), state=FileState.DELETED)
    whole, pdf, text = (
        (found.kind, found.files, found.first_p50, found.first_p95, found.whole_p50, found.whole_p95)
        for found in recent_freshness()
    )
    assert pdf == ("pdf", 100, *map(pytest.approx, (0.5, 0.95, 50.0, 95.0)))
    assert text == ("text", 1, *map(pytest.approx, (7.0, 7.0, 8.0, 8.0)))
    assert whole[:2] == ("", 101)

    operator = Client()
    first = User.objects.get(id=caller.actor.user_id)  # of the database, and so an operator
    operator.force_login(first, backend="allauth.account.auth_backends.AuthenticationBackend")
    shown = " ".join(operator.get("/admin/files/file/").content.decode().split("</table>")[0].split())
    assert '<td class="px-3 py-2">95.0</td>' in shown


def test_only_so_many_are_looked_at(caller: Caller) -> None:
    File.objects.bulk_create(
        File(
            organization_id=caller.actor.organization_id, owner_id=caller.actor.user_id, name="a", size=1, kind="csv",
            content_type="", object_key="k", state=FileState.READY, uploaded_at=done - timedelta(seconds=9),
            first_searchable_at=done, searchable_at=done,
        )
        for done in (timezone.now() - timedelta(hours=1) for _ in range(freshness.RECENT + 50))
    )  # fmt: skip
    row(caller, "pdf", 1.0, 1.0)
    whole, csv, pdf = recent_freshness()
    assert (whole.files, csv.files, pdf) == (
        freshness.RECENT,
        freshness.RECENT - 1,
        RecentFreshness("pdf", 1, 1.0, 1.0, 1.0, 1.0),
    )
