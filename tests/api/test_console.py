"""The operators' console: who gets in, what it can do, and that it never shows what people wrote."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import timezone

from apps.accounts.access import access_user_actor
from apps.accounts.models import ApiKey, Membership, Organization, User
from apps.accounts.public import record_usage
from apps.accounts.types import RunUsage
from apps.conversations.models import Conversation, Message, Run
from apps.core.ids import new_id
from apps.files.models import File, FileStage, Page, Passage, VectorVersion
from tests.factories.accounts import PASSWORD, make_actor, make_key, make_user
from tests.factories.inference import publish_replica

pytestmark = pytest.mark.django_db
SECRET = "zebra-crossing-at-midnight"
EXPECTED = {"User", "Organization", "Membership", "ApiKey", "Run", "File", "VectorVersion", "UsageEntry"}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture
def operator() -> Client:
    return signed_in(make_user(email="operator@example.org"))


def write_something(user: User) -> Run:
    """A conversation with a finished run and a file, whose every text holds the secret."""
    organization = user.organization
    conversation = Conversation.objects.create(
        organization=organization, owner=user, title=SECRET, updated_at=timezone.now()
    )
    run_id = new_id()
    question, answer = (
        Message.objects.create(
            id=new_id(),
            conversation=conversation,
            organization_id=organization.pk,
            seq=seq,
            role=role,
            text=SECRET,
            status="completed",
            run_id=run_id,
        )
        for seq, role in ((1, "user"), (2, "assistant"))
    )
    run = Run.objects.create(
        id=run_id,
        organization=organization,
        user=user,
        conversation=conversation,
        question_id=question.id,
        answer_id=answer.id,
        state="failed",
        tier="free",
        deadline_at=timezone.now() + timedelta(minutes=5),
        request_digest="d",
        model_requested="auto",
        model="fake",
        partial_text=SECRET,
        prompt=[{"role": "user", "content": SECRET}],
        context={"messages": [{"role": "user", "content": SECRET}], "passages": [{"text": SECRET}]},
        params={"stop": [SECRET], "extra": {"response_format": {"name": SECRET}}},
        error={"code": "rejected", "message": f"cannot parse {SECRET}"},
    )
    file = File.objects.create(
        organization=organization,
        owner=user,
        name="report.pdf",
        size=10,
        content_type="application/pdf",
        kind="pdf",
        object_key="k",
    )
    FileStage.objects.create(file=file, organization_id=organization.pk, name="parse")
    Page.objects.create(file=file, organization_id=organization.pk, number=1, text=SECRET, elements=[{"text": SECRET}])
    Passage.objects.create(
        organization_id=organization.pk,
        owner_id=user.pk,
        file=file,
        page_number=1,
        ordinal=1,
        heading=SECRET,
        text=SECRET,
        source="digital",
        token_count=1,
        length=1,
    )
    VectorVersion.objects.create(version="pooled:e", dimensions=384, chosen_at=timezone.now())
    record_usage(RunUsage(organization.pk, user.pk, run.id, "fake", 1, 0, 1))
    return run


def pages() -> list[str]:
    """Every address of the console that shows rows: lists, rows, their histories, and forms for new ones."""
    found = ["/admin/", "/admin/replicas/"]
    for model in admin.site._registry:
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        found += [base, f"{base}add/", f"/admin/{model._meta.app_label}/"]
        for row in model._default_manager.all():
            found += [f"{base}{row.pk}/change/", f"{base}{row.pk}/history/", f"{base}{row.pk}/delete/"]
    return found


def test_it_shows_the_tables_that_operators_need_and_no_others() -> None:
    assert {model.__name__ for model in admin.site._registry} == EXPECTED


def test_no_page_shows_what_people_wrote(operator: Client) -> None:
    person = make_user(email="writer@example.org")
    run = write_something(person)
    make_key(make_actor(person))

    shown = 0
    for address in pages():
        answer = operator.get(address)
        assert answer.status_code in (200, 403), address
        if answer.status_code == 200:
            shown += 1
            assert SECRET not in answer.content.decode(), address
    searched = operator.get("/admin/conversations/run/", {"q": str(run.id)})
    assert str(run.id) in searched.content.decode()
    assert SECRET not in searched.content.decode()
    assert shown >= 3 * len(EXPECTED)


def test_no_page_shows_a_keys_digest(operator: Client) -> None:
    key = make_key(make_actor(make_user()))
    row = ApiKey.objects.get(pk=key.info.id)
    html = operator.get(f"/admin/accounts/apikey/{row.pk}/change/").content.decode()
    assert row.prefix in html
    assert bytes(row.digest).hex() not in html
    assert "digest" not in html.lower()


def test_others_are_turned_away() -> None:
    make_user()
    person = signed_in(make_user())
    for address in pages():
        assert Client().get(address, follow=False).status_code == 302, address
        answer = person.get(address, follow=True)
        assert answer.status_code == 403, address


def test_signing_in_happens_in_the_app() -> None:
    answer = Client().get("/admin/accounts/user/", follow=True)
    assert answer.redirect_chain[-1][0] == "/sign-in?next=%2Fadmin%2Faccounts%2Fuser%2F"
    elsewhere = Client().get("/admin/login/?next=https://evil.example/")
    assert elsewhere["Location"] == "/sign-in?next=%2Fadmin%2F"


def test_an_operator_makes_an_account_while_sign_up_is_closed(operator: Client, settings: Any) -> None:
    settings.SIGNUP_POLICY = "first"
    form = {"email": "New@Example.org", "name": "New", "new_password": PASSWORD}
    answer = operator.post("/admin/accounts/user/add/", form)
    assert answer.status_code == 302, answer.content.decode()
    user = User.objects.get(email="new@example.org")
    assert user.check_password(PASSWORD)
    assert not user.is_staff
    assert user.organization.personal
    assert Membership.objects.get(user=user).role == "owner"


def test_an_operator_moves_a_person_among_their_organizations(operator: Client) -> None:
    person, team = make_user(email="mover@example.org"), Organization.objects.create(name="Team")
    page = f"/admin/accounts/user/{person.pk}/change/"
    form = {"email": person.email, "name": "", "is_active": "on", "organization": str(team.pk)}
    assert "not one of the available choices" in operator.post(page, form).content.decode()
    Membership.objects.create(user=person, organization=team)
    answer = operator.post(page, form)
    assert answer.status_code == 302, answer.content.decode()
    actor = access_user_actor(User.objects.get(pk=person.pk))
    assert actor is not None
    assert (actor.organization_id, actor.role) == (team.pk, "member")


def test_a_bad_new_account_is_explained(operator: Client) -> None:
    for form in (
        {"email": "operator@example.org", "new_password": PASSWORD},
        {"email": "x@example.org", "new_password": "a"},
    ):
        answer = operator.post("/admin/accounts/user/add/", form)
        assert answer.status_code == 200
        assert "errornote" in answer.content.decode() or "error" in answer.content.decode()
    assert User.objects.count() == 1


def test_an_operator_sets_a_password_and_ends_the_persons_sessions(operator: Client) -> None:
    user = make_user(email="forgetful@example.org")
    client = signed_in(user)
    assert client.get("/api/me").status_code == 200
    form = {"password1": "a-brand-new-passphrase-3", "password2": "a-brand-new-passphrase-3"}
    assert operator.post(f"/admin/accounts/user/{user.pk}/password/", form).status_code == 302
    user.refresh_from_db()
    assert user.check_password("a-brand-new-passphrase-3")
    assert client.get("/api/me").status_code == 401


def test_the_last_operator_cannot_be_taken_away(operator: Client) -> None:
    me = User.objects.get()
    form = {"email": me.email, "name": "", "is_active": "on", "organization": str(me.organization_id)}
    answer = operator.post(f"/admin/accounts/user/{me.pk}/change/", form)
    assert "only operator" in answer.content.decode()

    other = make_user()
    theirs = {"email": other.email, "is_staff": "on", "organization": str(other.organization_id)}
    operator.post(f"/admin/accounts/user/{other.pk}/change/", form | theirs)
    other.refresh_from_db()
    assert other.is_staff
    assert other.is_superuser
    assert operator.post(f"/admin/accounts/user/{me.pk}/change/", form).status_code == 302
    me.refresh_from_db()
    assert not me.is_staff
    assert not me.is_superuser


def test_locking_a_person_out_ends_sessions_and_keys(operator: Client) -> None:
    user = make_user()
    key = make_key(make_actor(user))
    client = signed_in(user)
    form = {"email": user.email, "name": "", "organization": str(user.organization_id)}
    assert operator.post(f"/admin/accounts/user/{user.pk}/change/", form).status_code == 302
    assert client.get("/api/me").status_code == 401
    assert Client().get("/api/me", headers={"authorization": f"Bearer {key.key}"}).status_code == 401


def test_keys_are_revoked_in_bulk(operator: Client) -> None:
    keys = [make_key(make_actor(make_user())) for _ in range(2)]
    form = {"action": "revoke", "_selected_action": [str(key.info.id) for key in keys]}
    assert operator.post("/admin/accounts/apikey/", form).status_code == 302
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_rows_of_the_product_cannot_be_written(operator: Client) -> None:
    run = write_something(make_user())
    for address in ("conversations/run", "files/file", "accounts/usageentry", "accounts/apikey"):
        assert operator.get(f"/admin/{address}/add/").status_code == 403
    assert operator.post(f"/admin/conversations/run/{run.id}/change/", {"state": "completed"}).status_code == 403
    assert operator.post(f"/admin/conversations/run/{run.id}/delete/", {"post": "yes"}).status_code == 403
    assert Organization.objects.exists()


def test_the_replicas_page_names_models_of_mixed_weights(operator: Client) -> None:
    for number, weights in ((1, "a"), (2, "b")):
        publish_replica("m", number=number, weights=weights * 64)
    html = operator.get("/admin/replicas/").content.decode()
    assert "have different weights" in html
    assert "bbbbbbbbbbbb</code>" in html


def test_the_replicas_page_explains_an_empty_registry(operator: Client) -> None:
    html = operator.get("/admin/replicas/").content.decode()
    assert "No replica is known" in html
    assert re.search(r"<title>\s*Replicas", html)
