"""How much may be kept: set in the console, held against many uploads at once, given back by deleting, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Organization, User
from apps.accounts.types import Actor
from apps.core.errors import QuotaExceeded
from apps.files import services
from apps.files.lifecycle import quotas
from apps.files.models import File
from tests.concurrency.together import together
from tests.factories.accounts import make_actor, make_colleague, make_user
from tests.factories.files import Caller, object_store

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1 << 20


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path) as base:
        yield base


@pytest.fixture
def caller(base: str) -> Caller:
    return Caller(base)


def start(actor: Actor, size: int = 1) -> Callable[[], object]:
    return partial(services.create_upload, actor, name="a.txt", size=size)


def allow(actor: Actor, *, files: int | None = None, mib: int | None = None) -> None:
    User.objects.filter(pk=actor.user_id).update(files_at_most=files, files_mib_at_most=mib)


def allow_all(actor: Actor, *, files: int | None = None, mib: int | None = None) -> None:
    Organization.objects.filter(pk=actor.organization_id).update(files_at_most=files, files_mib_at_most=mib)


def refused(answer: Any) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (409, "quota_exceeded")
    return body


@pytest.mark.parametrize("limit", ["files", "mib"])
def test_many_uploads_at_once_do_not_exceed_ones_own_limit(caller: Caller, limit: str) -> None:
    allow(caller.actor, **{limit: 5})
    outcomes = together([start(caller.actor, MIB) for _ in range(8)])
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in outcomes) == 3
    assert File.objects.count() == 5
    refused(caller.post("", {"name": "a.txt", "size": MIB}))


@pytest.mark.parametrize("limit", ["files", "mib"])
def test_many_people_at_once_do_not_exceed_their_organizations(caller: Caller, limit: str) -> None:
    people = [caller.actor, *(make_actor(make_colleague(caller.actor)) for _ in range(3))]
    stranger = make_actor()
    allow_all(caller.actor, **{limit: 5})
    outcomes = together([start(person, MIB) for person in people for _ in range(2)] + [start(stranger, MIB)])
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in outcomes) == 3
    assert not isinstance(outcomes[-1], Exception)
    assert File.objects.filter(organization_id=caller.actor.organization_id).count() == 5
    assert "Your organization's files" in refused(caller.post("", {"name": "a.txt", "size": MIB}))["detail"]


def test_without_a_limit_of_ones_own_everybodys_counts(caller: Caller, settings: Any) -> None:
    settings.FILES_PER_OWNER = 1
    caller.start("a.txt", 1)
    detail = refused(caller.post("", {"name": "a.txt", "size": 1}))["detail"]
    assert detail == "Your files are 1 of 1 allowed. Delete some first."
    allow(caller.actor, files=2)
    caller.start("a.txt", 1)


def test_bytes_count_from_the_announcement_on_and_are_given_back_by_deleting(caller: Caller, settings: Any) -> None:
    settings.FILE_BYTES_PER_OWNER = 3 * MIB
    first = caller.start("a.txt", 2 * MIB)
    body = refused(caller.post("", {"name": "b.txt", "size": MIB + 1}))
    assert body["detail"] == "This file has 2 MiB. Your files take 2 of 3 MiB allowed. Delete some first."
    assert (body["used"], body["limit"], body["unit"]) == (2 * MIB, 3 * MIB, "bytes")
    caller.start("c.txt", MIB)
    assert caller.delete(f"/{first['file']['id']}").status_code == 204
    caller.start("d.txt", 2 * MIB)


def test_an_upload_that_expired_takes_nothing(caller: Caller) -> None:
    allow(caller.actor, mib=1)
    caller.start("a.txt", MIB)
    File.objects.update(state="failed", error_code="expired")
    caller.start("b.txt", MIB)


def test_a_limit_that_was_lowered_holds_at_the_end_of_an_upload(caller: Caller) -> None:
    kept = caller.upload("a.txt", b"x" * 100)
    started = caller.start("b.txt", 5)
    sent = caller.send_all(started["upload"], b"hello")
    allow(caller.actor, files=1)
    path = f"/{started['file']['id']}/complete"
    refused(caller.post(path, {"parts": sent}))
    assert caller.file(started["file"]["id"])["state"] == "uploading", "what was sent stays"
    caller.delete(f"/{kept['id']}")
    assert caller.post(path, {"parts": sent}).json()["state"] == "processing"


def test_unfinished_uploads_are_limited(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "UNFINISHED_PER_OWNER", 2)
    for _ in range(2):
        caller.start("a.txt", 1)
    answer = caller.post("", {"name": "a.txt", "size": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_usage_is_told(caller: Caller, base: str) -> None:
    colleague = Caller(base, make_colleague(caller.actor))
    caller.start("a.txt", 10)
    colleague.start("b.txt", 32)
    allow(caller.actor, mib=7)
    allow_all(caller.actor, files=9)
    told = caller.get("/usage").json()
    assert told["mine"] == {"files": 1, "bytes": 10, "files_at_most": 1_000, "bytes_at_most": 7 * MIB}
    assert told["organization"] == {"files": 2, "bytes": 42, "files_at_most": 9, "bytes_at_most": None}


def test_an_operator_sets_the_limits(caller: Caller) -> None:
    console = Client()
    console.force_login(make_user(), backend="allauth.account.auth_backends.AuthenticationBackend")
    User.objects.filter(pk=console.session["_auth_user_id"]).update(is_staff=True, is_superuser=True)
    person = User.objects.get(pk=caller.actor.user_id)
    limits = {"files_at_most": "3", "files_mib_at_most": "4"}
    form = {"email": person.email, "name": "", "is_active": "on", "organization": str(person.organization_id), **limits}
    if person.is_staff:
        form["is_staff"] = "on"
    answer = console.post(f"/admin/accounts/user/{person.pk}/change/", form)
    assert answer.status_code == 302, answer.content.decode()
    organization = Organization.objects.get(pk=caller.actor.organization_id)
    inline = {f"memberships-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    form = {"name": organization.name, "tier": organization.tier, "files_at_most": "5", "files_mib_at_most": "6"}
    answer = console.post(f"/admin/accounts/organization/{organization.pk}/change/", form | inline)
    assert answer.status_code == 302, answer.content.decode()
    mine, everybody = quotas.usage(caller.actor)
    assert (mine.files_at_most, mine.bytes_at_most) == (3, 4 * MIB)
    assert (everybody.files_at_most, everybody.bytes_at_most) == (5, 6 * MIB)
