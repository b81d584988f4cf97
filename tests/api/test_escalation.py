"""A question that `auto` gave to the smaller model and the larger one answers, from the edge to the stored run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from tests.client import Api
from tests.services import Services
from tests.stack import Stack

# By its words a simple question, for which the smaller model is chosen.
QUESTION = "What is the capital of France, and on which river does the city stand?"
SERVED = "small=fake://s?level=1,large=fake://l?level=2"


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, replicas=0, environment={"PARLEY_REPLICA_URLS": SERVED}) as running:
        yield running


def test_readers_see_one_answer_and_are_told_who_gave_it(stack: Stack) -> None:
    api = Api(stack.url(), stack.api_key())
    conversation = api.new_conversation()
    run = api.ask(conversation, f"{QUESTION}\n@small n:0")["run"]
    audit = api.read(run["id"])
    assert audit.is_clean
    notice = {"kind": "escalated", "from_model": "small", "to_model": "large", "why": "its answer was empty"}
    assert audit.reading.notices == (notice,)
    assert audit.reading.text
    found = api.run(run["id"])
    assert (found["state"], found["model_requested"], found["model"]) == ("completed", "auto", "large")
    steps = [reason["step"] for reason in found["decision"]["reasons"]]
    assert steps == ["policy", "complexity", "load", "escalation", "placement"]
    assert api.messages(conversation)[1]["notices"] == [notice]


def test_a_client_of_the_api_gets_the_second_answer(stack: Stack) -> None:
    messages: Any = [{"role": "user", "content": f"{QUESTION}\n@small n:0"}]
    with OpenAI(base_url=f"{stack.url()}/v1", api_key=stack.api_key(), max_retries=0, timeout=30) as client:
        whole = client.chat.completions.create(model="auto", messages=messages)
        chunks = list(client.chat.completions.create(model="auto", messages=messages, stream=True))
    assert whole.model == chunks[-1].model == "large"
    assert whole.choices[0].message.content == "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_an_ordinary_answer_is_seen_while_it_is_written(stack: Stack) -> None:
    api = Api(stack.url(), stack.api_key())
    run = api.ask(api.new_conversation(), f"{QUESTION} itl:50")["run"]
    with api.events(run["id"]) as events:
        seen = events.until(lambda reading: bool(reading.text))
        assert api.run(run["id"])["state"] == "running"
    assert len(seen.text) < 100


def test_an_ordinary_answer_stays_with_the_model_that_was_chosen(stack: Stack) -> None:
    api = Api(stack.url(), stack.api_key())
    run = api.ask(api.new_conversation(), QUESTION)["run"]
    audit = api.read(run["id"])
    assert (audit.is_clean, audit.reading.notices) == (True, ())
    assert api.run(run["id"])["model"] == "small"
