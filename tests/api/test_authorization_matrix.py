"""Every endpoint x every kind of caller. An endpoint without an entry here fails the first test.

Callers: nobody, the owner (by session and by key), a colleague of the same organization, a person of another
one, and keys that were revoked or have expired. Requests go through the whole ASGI application. To whom a thing
does not belong, it looks exactly like a thing that does not exist: the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from apps.accounts.models import ApiKey, User
from apps.accounts.public.identity import forget_all
from apps.api.realtime.app import ENDPOINTS
from apps.config.asgi import application
from apps.conversations import access as conversation_access
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.realtime import relay
from apps.core.ids import new_id
from tests.factories.accounts import make_actor, make_colleague, make_key, make_user
from tests.factories.files import known_file
from tests.factories.inference import publish_replica

pytestmark = pytest.mark.django_db(transaction=True)
METHODS = ("get", "post", "put", "patch", "delete")
REQUEST_ID = "authorization-matrix"
CSRF = "c" * 32
Body = Callable[["World"], dict[str, Any]]
Caller = Literal["nobody", "revoked", "expired", "stranger", "colleague", "owner by key", "owner"]


# ------------------------------------------------------------------ what is tried


@dataclass(frozen=True)
class Case:
    """`public`: for everybody. `self`: for whoever is signed in. `owned`: names something of the owner's."""

    kind: Literal["public", "self", "owned"]
    body: Body | None = None
    # What the owner may be answered; for owned things it is enough that it is not the stranger's answer.
    owner: frozenset[int] = frozenset({200, 201, 204})
    # The owner's key, where it is not treated as the owner is.
    by_key: frozenset[int] | None = None
    by_session: frozenset[int] | None = None


def text(world: World) -> dict[str, Any]:
    return {"client_id": str(uuid4()), "text": "hello", "parent_id": None, "file_ids": [], "model": "auto"}


def only(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


C, F, R = "/api/conversations", "/api/files", "/api/runs"
CASES: dict[tuple[str, str], Case] = {
    ("get", "/api/site"): Case("public"),
    ("get", "/api/schema"): Case("public"),
    ("get", "/api/docs"): Case("public"),
    ("get", "/api/me"): Case("self"),
    ("patch", "/api/me"): Case("self", lambda w: {"name": "Ada"}),
    ("get", "/api/keys"): Case("self", by_key=only(403)),
    ("post", "/api/keys"): Case("self", lambda w: {"name": "k"}, by_key=only(403)),
    ("delete", "/api/keys/{key_id}"): Case("owned", by_key=only(403)),
    ("get", "/api/models"): Case("self"),
    ("get", C): Case("self"),
    ("post", C): Case("self", lambda w: {"title": "t"}),
    ("get", f"{C}/{{conversation_id}}"): Case("owned"),
    ("patch", f"{C}/{{conversation_id}}"): Case("owned", lambda w: {"pinned": True}),
    ("delete", f"{C}/{{conversation_id}}"): Case("owned"),
    ("post", f"{C}/{{conversation_id}}/restore"): Case("owned"),
    ("post", f"{C}/{{conversation_id}}/branch"): Case("owned", lambda w: {"message_id": str(w.message_id)}),
    ("get", f"{C}/{{conversation_id}}/messages"): Case("owned"),
    ("post", f"{C}/{{conversation_id}}/messages"): Case("owned", text, owner=only(200, 201)),
    ("post", f"{C}/{{conversation_id}}/messages/{{message_id}}/regenerate"): Case(
        "owned", lambda w: {"client_id": str(uuid4())}, owner=only(200, 201)
    ),
    ("get", f"{R}/{{run_id}}"): Case("owned"),
    ("post", f"{R}/{{run_id}}/cancel"): Case("owned"),
    ("get", f"{R}/{{run_id}}/context"): Case("owned"),
    # The log of the run has expired, so the owner gets the final message.
    ("get", f"{R}/{{run_id}}/events"): Case("owned", owner=only(410)),
    ("get", F): Case("self"),
    ("post", F): Case("self", lambda w: {"name": "a.pdf", "size": 10, "content_type": "application/pdf"}),
    ("get", f"{F}/usage"): Case("self"),
    ("get", f"{F}/{{file_id}}"): Case("owned"),
    ("delete", f"{F}/{{file_id}}"): Case("owned"),
    ("get", f"{F}/{{file_id}}/receipt"): Case("owned"),
    ("get", f"{F}/{{file_id}}/upload"): Case("owned", owner=only(200, 409)),
    ("post", f"{F}/{{file_id}}/complete"): Case(
        "owned", lambda w: {"parts": [{"number": 1, "etag": "e"}]}, owner=only(200, 409, 422)
    ),
    ("post", f"{F}/{{file_id}}/password"): Case("owned", lambda w: {"password": "x"}, owner=only(409)),
    ("post", f"{F}/{{file_id}}/cancel"): Case("owned", owner=only(200, 409)),
    ("post", f"{F}/{{file_id}}/retry"): Case("owned", owner=only(200, 409)),
    ("get", f"{F}/{{file_id}}/summary"): Case("owned"),
    ("post", f"{F}/{{file_id}}/summary"): Case("owned", owner=only(202)),
    ("get", f"{F}/{{file_id}}/content"): Case("owned", owner=only(200, 302)),
    ("get", f"{F}/{{file_id}}/tables"): Case("owned"),
    ("get", f"{F}/{{file_id}}/tables/{{number}}"): Case("owned", owner=only(404)),
    ("post", f"{F}/{{file_id}}/query"): Case("owned", lambda w: {"sql": "SELECT 1"}),
    ("get", f"{F}/{{file_id}}/pages"): Case("owned"),
    ("get", f"{F}/{{file_id}}/pages/{{number}}"): Case("owned"),
    # A text file has no pictures, which only its owner is told.
    ("get", f"{F}/{{file_id}}/pages/{{number}}/image"): Case("owned", owner=only(404)),
    ("get", "/v1/models"): Case("self", by_session=only(401)),
    ("get", "/v1/models/{model}"): Case("self", by_session=only(401)),
    # No runner would answer here, so the request is one that is refused after the caller is known.
    ("post", "/v1/chat/completions"): Case(
        "self",
        lambda w: {"model": "auto", "messages": [{"role": "user", "content": "x"}], "n": 2},
        owner=only(400),
        by_session=only(401),
    ),
}

# A thing of the owner's named from within something of one's own.
SMUGGLED: dict[str, tuple[str, str, Body]] = {
    "branch from a message": ("post", f"{C}/{{own}}/branch", lambda w: {"message_id": str(w.message_id)}),
    "answer under a message": (
        "post",
        f"{C}/{{own}}/messages",
        lambda w: text(w) | {"client_id": str(w.file_id), "parent_id": str(w.message_id)},
    ),
    "attach a file": (
        "post",
        f"{C}/{{own}}/messages",
        lambda w: text(w) | {"client_id": str(w.key_id), "file_ids": [str(w.file_id)]},
    ),
    "regenerate an answer": (
        "post",
        f"{C}/{{own}}/messages/{{message_id}}/regenerate",
        lambda w: {"client_id": str(w.key_id)},
    ),
    "switch to a message": ("patch", f"{C}/{{own}}", lambda w: {"head_message_id": str(w.message_id)}),
}


# ------------------------------------------------------------------ who tries it


@dataclass(frozen=True)
class World:
    """Ids of one of each thing. Those of `nothing()` exist nowhere."""

    conversation_id: UUID = field(default_factory=new_id)
    message_id: UUID = field(default_factory=new_id)
    run_id: UUID = field(default_factory=new_id)
    file_id: UUID = field(default_factory=new_id)
    key_id: UUID = field(default_factory=new_id)
    number: int = 1
    model: str = "auto"

    def fill(self, path: str) -> str:
        return path.format_map({name: getattr(self, name) for name in self.__dataclass_fields__})

    @property
    def ids(self) -> list[str]:
        return [str(value) for value in vars(self).values() if isinstance(value, UUID)]


@dataclass(frozen=True)
class Cast:
    """The owner's things, and each caller's headers."""

    owner: User
    world: World
    headers: dict[str, dict[str, str]]
    strangers_conversation: UUID


def own(user: User) -> World:
    """A conversation with one finished run, a text file of one page, and a key, all of `user`'s."""
    organization = user.organization
    world = World(key_id=make_key(make_actor(user)).info.id)
    conversation = Conversation.objects.create(
        id=world.conversation_id, organization=organization, owner=user, title="mine", updated_at=timezone.now()
    )
    question_id = new_id()
    common = {"conversation": conversation, "organization_id": organization.pk, "run_id": world.run_id, "text": "words"}
    Message.objects.create(id=question_id, seq=1, role="user", **common)
    Message.objects.create(id=world.message_id, seq=2, role="assistant", parent_id=question_id, **common)
    Conversation.objects.filter(id=conversation.id).update(last_seq=2, head_message_id=world.message_id)
    Run.objects.create(
        id=world.run_id,
        organization=organization,
        user=user,
        conversation=conversation,
        question_id=question_id,
        answer_id=world.message_id,
        state="completed",
        tier="free",
        deadline_at=timezone.now(),
        request_digest="d",
        model_requested="auto",
    )
    known_file(world.file_id, user)
    return world


def session_of(user: User) -> dict[str, str]:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return {"cookie": f"sessionid={client.cookies['sessionid'].value}; csrftoken={CSRF}", "x-csrftoken": CSRF}


def key_of(user: User, **changes: Any) -> dict[str, str]:
    key = make_key(make_actor(user))
    ApiKey.objects.filter(pk=key.info.id).update(**changes) if changes else None
    return {"authorization": f"Bearer {key.key}"}


@pytest.fixture
def cast() -> Cast:
    make_user()  # the operator, who is none of the callers
    owner, stranger = make_user(), make_user()
    colleague = make_colleague(make_actor(owner))
    yesterday = timezone.now() - timedelta(days=1)
    headers = {
        "nobody": {},
        "revoked": key_of(owner, revoked_at=yesterday),
        "expired": key_of(owner, expires_at=yesterday),
        "stranger": session_of(stranger),
        "stranger by key": key_of(stranger),
        "colleague": session_of(colleague),
        "colleague by key": key_of(colleague),
        "owner by key": key_of(owner),
        "owner": session_of(owner),
    }
    publish_replica()
    return Cast(owner, own(owner), headers, own(stranger).conversation_id)


@pytest.fixture
async def http(cast: Cast) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application, raise_app_exceptions=False)
    headers = {"x-request-id": REQUEST_ID}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        yield client
    await relay().stop()
    relay.cache_clear()


async def ask(
    http: httpx.AsyncClient, headers: dict[str, str], method: str, path: str, body: dict[str, Any] | None
) -> tuple[int, str, bytes]:
    answer = await http.request(method, path, headers=headers, json=body)
    return answer.status_code, answer.headers.get("content-type", ""), answer.content


# ------------------------------------------------------------------ the tests


def served() -> set[tuple[str, str]]:
    """Every method and address below /api and /v1: Django's by its resolver, and those served before it."""
    found = {(method.lower(), path) for path, methods in ENDPOINTS.items() for method in methods}

    def walk(resolver: URLResolver, prefix: str) -> None:
        for entry in resolver.url_patterns:
            path = prefix + _readable(str(entry.pattern))
            if isinstance(entry, URLResolver):
                walk(entry, path)
            elif path.startswith(("/api", "/v1")):
                found.update((method, path) for method in _methods(entry))

    walk(get_resolver(), "/")
    return found


def _readable(pattern: str) -> str:
    for converter in ("<uuid:", "<int:", "<str:", "<slug:", "<"):
        pattern = pattern.replace(converter, "{")
    return pattern.replace(">", "}")


def _methods(entry: URLPattern) -> set[str]:
    view = getattr(entry.callback, "cls", None) or getattr(entry.callback, "view_class", None)
    return {method for method in METHODS if hasattr(view, method)} if view else {"get", "post"}


def test_every_endpoint_has_an_entry() -> None:
    assert served() == set(CASES)


@pytest.mark.parametrize("area", sorted({path.split("/{")[0] for _, path in CASES}))
async def test_access(cast: Cast, http: httpx.AsyncClient, area: str) -> None:
    """One set of people for all endpoints of an area; each endpoint gets things of its own."""
    for method, path in CASES:
        if path.split("/{")[0] == area:
            await check(cast, http, method, path)


async def check(cast: Cast, http: httpx.AsyncClient, method: str, path: str) -> None:
    case, nothing = CASES[method, path], World()
    world = await sync_to_async(own)(cast.owner)
    body = case.body(world) if case.body else None
    where = f"{method} {path}"
    by_key = case.by_key or case.owner
    by_session = case.by_session or case.owner

    for caller in ("nobody", "revoked", "expired"):
        status, _, content = await ask(http, cast.headers[caller], method, world.fill(path), body)
        expected = {200} if case.kind == "public" else {401}
        assert status in expected, (where, caller, status, content)

    for caller in ("stranger", "stranger by key", "colleague", "colleague by key"):
        got = await ask(http, cast.headers[caller], method, world.fill(path), body)
        others = by_key if caller.endswith("key") else by_session
        if case.kind == "owned" and others != only(403):
            unknown = await ask(http, cast.headers[caller], method, nothing.fill(path), body)
            assert got == unknown, f"{where}: {caller} can tell a foreign thing from none"
            assert got[0] == 404, (where, caller, got)
        else:
            assert got[0] in others, (where, caller, got)
        leaked = [id for id in world.ids if id.encode() in got[2]]
        assert not leaked, f"{where}: {caller} was told {leaked}"

    unknown = await ask(http, cast.headers["owner"], method, nothing.fill(path), body)
    if case.kind == "owned":
        assert unknown[0] == 404, (where, unknown)
    if case.by_key is not None or method != "delete":
        status, _, content = await ask(http, cast.headers["owner by key"], method, world.fill(path), body)
        assert status in by_key, (where, "owner by key", status, content)
    mine = await ask(http, cast.headers["owner"], method, world.fill(path), body)
    assert mine[0] in by_session, (where, "owner", mine)
    if case.kind == "owned":
        assert mine != unknown, f"{where}: the owner is treated as a stranger"


@pytest.mark.parametrize("name", SMUGGLED)
async def test_foreign_ids_inside_ones_own_things(cast: Cast, http: httpx.AsyncClient, name: str) -> None:
    method, path, body = SMUGGLED[name]
    answers = []
    for world in (cast.world, World()):
        address = world.fill(path.replace("{own}", str(cast.strangers_conversation)))
        answers.append(await ask(http, cast.headers["stranger"], method, address, body(world)))
    assert answers[0] == answers[1]
    assert answers[0][0] in (404, 422), answers[0]


async def test_a_deleted_conversation_looks_like_none(cast: Cast, http: httpx.AsyncClient) -> None:
    path = cast.world.fill(f"{C}/{{conversation_id}}")
    owner = cast.headers["owner"]
    assert (await ask(http, owner, "delete", path, None))[0] == 204
    deleted = await ask(http, owner, "get", path, None)
    assert deleted == await ask(http, owner, "get", World().fill(f"{C}/{{conversation_id}}"), None)
    assert deleted[0] == 404


async def test_a_write_by_session_needs_the_csrf_token(cast: Cast, http: httpx.AsyncClient) -> None:
    """Cross-site requests carry the cookie but not the token; keys need none."""
    headers = {"cookie": cast.headers["owner"]["cookie"], "x-csrftoken": secrets.token_hex(16)}
    for (method, path), case in CASES.items():
        if method != "get" and not path.startswith("/v1"):
            body = case.body(cast.world) if case.body else None
            status, _, content = await ask(http, headers, method, cast.world.fill(path), body)
            assert status == 403, (method, path, content)
            assert b"CSRF" in content


async def test_the_matrix_notices_a_forgotten_owner(
    cast: Cast, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one patch of our own code here: a seeded bug, to see this test go red."""

    def forgetful(actor: Any) -> Any:
        return Conversation.objects.filter(organization_id=actor.organization_id)

    monkeypatch.setattr(conversation_access, "own_conversations", forgetful)
    with pytest.raises(AssertionError, match="colleague"):
        await check(cast, http, "get", f"{C}/{{conversation_id}}")


async def test_locking_the_owner_out_ends_everything(cast: Cast, http: httpx.AsyncClient) -> None:
    await sync_to_async(User.objects.update)(is_active=False)
    forget_all()
    for caller in ("owner", "owner by key"):
        for path in ("/api/me", f"{R}/{{run_id}}/events", "/v1/models"):
            status, _, _ = await ask(http, cast.headers[caller], "get", cast.world.fill(path), None)
            assert status == 401, (caller, path)
