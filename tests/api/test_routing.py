"""Which model a question gets where there is a choice, and what its run keeps of the reasons."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.test import Client
from redis.asyncio import Redis

from apps.conversations.models import Run
from apps.conversations.services.api_runs import ApiCall, start_api_run
from apps.conversations.services.posting import Question, post_message
from apps.conversations.services.registry import forget_models
from apps.conversations.types import RunParams
from apps.core.errors import Invalid, ModelNotFound, NoReplica
from apps.core.valkey import valkey
from inference.protocol import ChatMessage, ReplicaState
from inference.quality import Answers
from inference.registry import RULES_KEY, publish_rules, read_rules
from inference.routing.types import Rule
from tests.factories.accounts import make_actor, make_key
from tests.factories.conversations import finish, make_conversation
from tests.factories.inference import publish_replica
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db
SIMPLE = "What is the capital of France, and on which river does the city stand?"
ODD = "\u4f60\u597d"


def serve(**levels: int) -> None:
    for model, level in levels.items():
        publish_replica(model, level=level)
    forget_models()


def asked(text: str, model: str = "auto") -> Run:
    actor = make_actor()
    question = Question(make_conversation(actor), uuid4(), text, None, (), model)
    return Run.objects.get(id=post_message(actor, question).view["run"]["id"])


def steps(run: Run) -> list[str]:
    assert run.decision is not None
    return [reason["step"] for reason in run.decision["reasons"]]


def test_models_that_are_alike_are_not_weighed() -> None:
    serve(a=1, b=1)
    run = asked(ODD)
    assert (run.model, steps(run)) == ("a", ["rule"])


def test_what_the_estimate_does_not_know_goes_to_the_stronger_model() -> None:
    serve(small=1, large=2)
    run = asked(ODD)
    assert (run.model, steps(run)) == ("large", ["policy", "complexity", "load"])
    assert run.decision is not None
    assert run.decision["reasons"][1]["facts"]["unfamiliar"]
    assert run.decision["alternatives"] == ["small"]


def test_a_familiar_question_goes_where_its_score_says() -> None:
    serve(small=1, large=2)
    run = asked(SIMPLE)
    assert run.decision is not None
    facts = run.decision["reasons"][1]["facts"]
    assert facts["unfamiliar"] == ""
    assert run.model == ("large" if facts["score"] >= facts["thresholds"][0] else "small")


def test_a_persons_choice_is_never_overridden() -> None:
    serve(small=1, large=2)
    run = asked(ODD, "small")
    assert (run.model, steps(run)) == ("small", ["user"])


def test_only_models_that_are_ready_are_chosen_for_auto() -> None:
    serve(small=1)
    publish_replica("large", level=2, state=ReplicaState.GONE)
    forget_models()
    assert asked(ODD).model == "small"
    with pytest.raises(NoReplica):
        asked(ODD, "large")
    with pytest.raises(ModelNotFound, match=r"auto, .*large"):
        asked(ODD, "huge")


def test_the_api_decides_by_the_last_question() -> None:
    serve(small=1, large=2)
    messages = (ChatMessage("system", SIMPLE), ChatMessage("user", ODD), ChatMessage("assistant", SIMPLE))
    started = start_api_run(make_actor(), ApiCall("auto", messages, RunParams()))
    run = Run.objects.get(id=started.run_id)
    assert (run.model, steps(run)) == ("large", ["policy", "complexity", "load"])


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}


def called(model: str = "auto", *, words: int = 1, **extra: Any) -> Run:
    messages = (ChatMessage("user", "word " * words),)
    started = start_api_run(make_actor(), ApiCall(model, messages, RunParams(extra=extra)))
    return Run.objects.get(id=started.run_id)


@pytest.mark.parametrize(
    ("cannot", "extra"),
    [("tools", {"tools": [WEATHER]}), ("structured", {"response_format": FORM})],
)
def test_a_model_gets_no_question_that_it_was_not_made_for(cannot: str, extra: dict[str, Any]) -> None:
    publish_replica("plain", cannot=(cannot,))
    publish_replica("skilled")
    forget_models()
    assert called().model == "plain"
    assert called(**extra).model == "skilled"
    with pytest.raises(Invalid, match=f"plain cannot answer this: it lacks {cannot}"):
        called("plain", **extra)


def test_tools_that_may_not_be_called_are_no_need() -> None:
    publish_replica("plain", cannot=("tools",))
    forget_models()
    assert called(tools=[WEATHER], tool_choice="none").model == "plain"
    with pytest.raises(Invalid, match=r"No model may answer this.*plain: it lacks tools"):
        called(tools=[WEATHER])


def test_auto_looks_for_a_context_that_is_long_enough() -> None:
    publish_replica("short")
    publish_replica("vast", context_length=32_768)
    forget_models()
    assert called().model == "short"
    assert called(words=8_000).model == "vast"


def test_the_reasons_can_be_read(settings: Any) -> None:
    serve(small=1, large=2)
    actor = make_actor()
    question = Question(make_conversation(actor), uuid4(), ODD, None, (), "auto")
    run_id = post_message(actor, question).view["run"]["id"]
    answer = Client().get(f"/api/runs/{run_id}", headers={"authorization": f"Bearer {make_key(actor).key}"})
    assert answer.status_code == 200
    assert answer.json()["decision"]["reasons"][0]["text"] == "2 of 2 models may answer"


def rule(*rules: Rule, owner: str = "host") -> None:
    """As a supervisor tells the rules of its manifest."""

    async def tell() -> None:
        redis = Redis.from_url(settings.REDIS_URL)
        await publish_rules(redis, owner, rules)
        await redis.aclose()

    asyncio.run(tell())
    forget_models()


def test_the_manifests_rules_decide_before_the_estimate() -> None:
    serve(small=1, large=2)
    assert asked(ODD).model == "large"
    rule(Rule("greeting", 1, fixed=True, words_at_most=3))
    run = asked(ODD)
    assert (run.model, steps(run)) == ("small", ["policy", "rule", "load"])
    rule()
    assert asked(ODD).model == "large", "the manifest has none any more"


def test_rules_of_several_hosts_are_put_together() -> None:
    first, second = Rule("a", 1, words_at_most=1), Rule("b", 2, needs=frozenset({"tools"}))
    rule(second, owner="host 2")
    rule(first, second, owner="host 1")
    valkey().hset(RULES_KEY, "host 3", b"{")
    valkey().hset(RULES_KEY, "host 4", b'{"at": 1, "rules": [{"name": "old", "level": 1, "needs": []}]}')
    assert read_rules(valkey()) == (first, second)


def test_a_rule_sees_how_long_the_conversation_is() -> None:
    serve(small=1, large=2)
    rule(Rule("greeting", 1, words_at_most=3), Rule("long", 1, fixed=True, history_tokens_from=1_000))
    actor = make_actor()
    conversation = make_conversation(actor)

    def ask_after(answer_id: UUID | None) -> Run:
        question = Question(conversation, uuid4(), ODD, answer_id, (), "auto")
        return Run.objects.get(id=post_message(actor, question).view["run"]["id"])

    first = ask_after(None)
    finish(first.id, "word " * 500)
    assert ask_after(first.answer_id).model == "large"
    second = ask_after(first.answer_id)
    finish(second.id, "word " * 500)
    assert ask_after(second.answer_id).model == "small"
    assert ask_after(first.answer_id).model == "large", "another branch"


def test_a_rule_sees_how_much_a_caller_sends() -> None:
    serve(small=1, large=2)
    rule(Rule("long", 1, fixed=True, history_tokens_from=1_000))

    def call(before: int, words: int) -> Run:
        messages = (ChatMessage("system", "word " * before), ChatMessage("user", f"{ODD} " * words))
        return Run.objects.get(id=start_api_run(make_actor(), ApiCall("auto", messages, RunParams())).run_id)

    assert call(1, 900).model == "large"
    assert call(900, 1).model == "small"


def counted(**bad: int) -> None:
    """A hundred answers of each model, so many of them bad."""

    async def tell() -> None:
        redis = Redis.from_url(settings.REDIS_URL)
        answers = Answers()
        for model, failed in bad.items():
            for n in range(100):
                answers.note(model, good=n >= failed)
        await answers.publish(redis)
        await redis.aclose()

    asyncio.run(tell())
    forget_models()


def test_of_a_level_the_model_that_manages_more_is_chosen() -> None:
    serve(able=2, broken=2, small=1)
    rule(Rule("all", 2, fixed=True))
    assert asked(ODD).model == "able"
    counted(able=30, broken=10)
    run = asked(ODD)
    assert run.decision is not None
    assert (run.model, run.decision["reasons"][-1]["facts"]["quality"]) == ("broken", 0.9)
    counted(broken=100)
    assert asked(ODD).model == "able", "0.45 in all, against 0.7"


@pytest.mark.django_db(transaction=True)
def test_runs_tell_how_their_models_did() -> None:
    serve(fake=1, large=2)
    actor = make_actor()
    ids = []
    for model, text in (("auto", f"{SIMPLE} say: Paris."), ("fake", "n:1"), ("auto", f"{SIMPLE}\n@fake n:0")):
        question = Question(make_conversation(actor), uuid4(), text, None, (), model)
        ids.append(post_message(actor, question).view["run"]["id"])
    for id in ids:
        assert execute(id, "fake=fake://a", "large=fake://b?level=2").state == "completed"
    (key,) = valkey().scan_iter("inference:quality:*")
    assert valkey().hgetall(key) == {b"good fake": b"1", b"bad fake": b"1", b"good large": b"1"}
