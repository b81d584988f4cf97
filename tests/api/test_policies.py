"""What an operator allows an organization of models and regions, on every road to an answer, and of nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.test import Client

from apps.accounts.models import Organization, User
from apps.accounts.public.identity import forget_all
from apps.accounts.types import Actor, ModelPolicy
from apps.config.asgi import application
from apps.conversations.models import Run
from apps.conversations.realtime import relay
from apps.conversations.services.registry import forget_models
from inference.protocol import ReplicaState
from tests.factories.accounts import make_key
from tests.factories.conversations import finish, make_conversation
from tests.factories.inference import publish_replica
from tests.factories.people import Person, shown
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)


def serve(*models: tuple[str, int, str], state: ReplicaState = ReplicaState.READY) -> None:
    """Each is a model, its level, and the region of its replica."""
    for model, level, region in models:
        publish_replica(model, level=level, region=region, state=state)
    forget_models()


def allow(actor: Actor, **policy: Any) -> None:
    Organization.objects.filter(id=actor.organization_id).update(**policy)
    forget_all()


@pytest.fixture
def me() -> Person:
    serve(("small", 1, ""), ("large", 2, ""))
    return Person()


def post(person: Person, model: str = "auto", text: str = "\u4f60\u597d") -> Any:
    path = f"/api/conversations/{make_conversation(person.actor)}/messages"
    return person.post(path, {"client_id": str(uuid4()), "text": text, "model": model})


def run_of(posted: Any) -> Run:
    return Run.objects.get(id=shown(posted, 201)["run"]["id"])


def refused(answer: Any) -> str:
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    return str(answer.json()["detail"])


def test_a_model_that_is_not_allowed_is_not_listed_not_chosen_and_not_given(me: Person) -> None:
    assert run_of(post(me)).model == "large"
    allow(me.actor, allowed_models=["small"])
    assert [model["id"] for model in shown(me.get("/api/models"))["results"]] == ["small"]
    assert run_of(post(me)).model == "small"
    assert refused(post(me, "large")) == "large cannot be used here: the organization does not allow it."
    assert Run.objects.count() == 2


def test_another_organization_is_not_affected(me: Person) -> None:
    other = Person()
    allow(me.actor, allowed_models=["small"], level_at_most=1, region="mars")
    assert run_of(post(other, "large")).model == "large"
    assert len(shown(other.get("/api/models"))["results"]) == 2
    refused(post(me, "small"))


def test_a_level_and_its_reason_are_kept_with_the_run(me: Person) -> None:
    serve(("middle", 2, ""), ("small", 1, ""), ("large", 3, ""))
    allow(me.actor, level_at_most=2)
    run = run_of(post(me))
    assert (run.model, run.decision and run.decision["alternatives"]) == ("middle", ["small"])
    assert run.decision is not None
    facts = run.decision["reasons"][0]["facts"]
    assert facts["excluded"] == {"large": "the organization allows models up to level 2"}
    assert refused(post(me, "large")).endswith("up to level 2.")


def test_an_answer_is_not_generated_again_by_a_model_that_was_forbidden_meanwhile(me: Person) -> None:
    posted = shown(post(me, "large"), 201)
    finish(posted["run"]["id"])
    answer = posted["answer"]
    allow(me.actor, allowed_models=["small"])
    path = f"/api/conversations/{answer['conversation_id']}/messages/{answer['id']}/regenerate"
    refused(me.post(path, {"client_id": str(uuid4()), "model": "large"}))
    again = shown(me.post(path, {"client_id": str(uuid4()), "model": "auto"}), 201)
    assert again["run"]["model"] == "small"


def test_an_organization_that_may_use_nothing_is_told_why(me: Person) -> None:
    allow(me.actor, allowed_models=["huge"])
    told = refused(post(me))
    assert told.startswith("Your organization may use none of the models that run (")
    assert "small: the organization does not allow it" in told


# ------------------------------------------------------------------ regions


def test_data_stay_in_their_region(me: Person) -> None:
    serve(("small", 1, "eu"), ("small", 1, "us"), ("large", 2, "us"))
    allow(me.actor, region="eu")
    listed = shown(me.get("/api/models"))["results"]
    assert [(model["id"], model["replicas"]) for model in listed] == [("small", {"ready": 1, "total": 1})]
    run = run_of(post(me))
    assert run.decision is not None
    assert (run.model, run.decision["region"]) == ("small", "eu")
    assert run.decision["reasons"][0]["text"] == "The data stay in eu: no replica elsewhere is used."
    assert refused(post(me, "large")) == "large cannot be used here: the data must stay in eu."


def test_a_model_that_is_away_in_the_region_is_away(me: Person) -> None:
    serve(("large", 2, "us"))
    serve(("large", 2, "eu"), state=ReplicaState.GONE)
    allow(me.actor, region="eu")
    answer = post(me, "large")
    assert (answer.status_code, answer.json()["code"]) == (503, "no_replica")


@pytest.mark.parametrize("region", ["eu", "us"])
def test_the_run_is_placed_in_the_region(me: Person, region: str) -> None:
    serve(("small", 1, "eu"), ("small", 1, "us"))
    allow(me.actor, region=region)
    run = run_of(post(me, "small", "n:3"))
    ended = execute(run.id, "small=fake://eu?region=eu", "small=fake://us?region=us")
    assert (ended.state, ended.replica) == ("completed", f"small@{region}")
    assert ended.decision is not None
    assert ended.decision["reasons"][-1]["text"] == f"small@{region} is the only replica that is ready."


def test_an_answer_that_breaks_off_goes_on_in_the_region_only(me: Person) -> None:
    serve(("small", 1, "eu"))
    allow(me.actor, region="eu")
    run = run_of(post(me, "small", "n:30 die:12"))
    ended = execute(
        run.id, "small=fake://eu?region=eu", "small=fake://second?region=eu", *(f"small=fake://us{n}" for n in range(4))
    )
    assert ended.state == "completed"
    (seam,) = ended.reconstructed
    assert {seam["replica"], *(r["facts"]["replica"] for r in (ended.decision or {})["reasons"][2:])} == {
        "small@eu",
        "small@second",
    }


# ------------------------------------------------------------------ the API for programs


@pytest.fixture
def key(me: Person) -> dict[str, str]:
    return {"authorization": f"Bearer {make_key(me.actor, full=False).key}"}


@pytest.fixture
async def client(key: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=key) as made:
        yield made
    await relay().stop()
    relay.cache_clear()


async def test_programs_are_held_to_it_too(me: Person, client: httpx.AsyncClient) -> None:
    await Organization.objects.filter(id=me.actor.organization_id).aupdate(allowed_models=["small"])
    forget_all()
    listed = (await client.get("/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == ["auto", "small"]
    assert (await client.get("/v1/models/small")).status_code == 200
    assert (await client.get("/v1/models/large")).status_code == 404
    body = {"model": "large", "messages": [{"role": "user", "content": "hello"}]}
    answer = await client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_denied")
    assert await Run.objects.acount() == 0


# ------------------------------------------------------------------ the console


def test_an_operator_sets_it_and_hears_when_nothing_is_left(me: Person) -> None:
    operator = Client()
    first = User.objects.get(id=me.actor.user_id)
    operator.force_login(first, backend="allauth.account.auth_backends.AuthenticationBackend")
    organization = Person().actor.organization_id
    address = f"/admin/accounts/organization/{organization}/change/"
    form = {"name": "Theirs", "tier": "free", "allowed_models": "small, middle", "level_at_most": "", "region": ""}
    form |= {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    assert operator.post(address, form).status_code == 302
    assert Organization.objects.get(id=organization).policy == ModelPolicy(frozenset({"small", "middle"}))
    assert b"none of the models" not in operator.get(address).content
    assert operator.post(address, form | {"region": "mars"}).status_code == 302
    assert Organization.objects.get(id=organization).policy.region == "mars"
    assert b"none of the models that are known now can answer" in operator.get(address).content
    assert operator.post(address, form | {"level_at_most": "10"}).status_code == 200
