"""A model's look into tables without a database: what it is told, and what does not stop an answer."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from apps.accounts.types import Actor
from apps.conversations.runner import consulting
from apps.conversations.runner.consulting import Consultation
from apps.conversations.types import Turn
from apps.files.public import TableCard
from apps.files.types import PassageHit, SearchResult
from inference.engines.fake import FakeEngine
from inference.engines.script import Fault, Script
from inference.protocol import ChatMessage, GenerationRequest, Usage

LIKE = GenerationRequest("run-1", "fake", (ChatMessage("user", "the answer's own prompt"),), 100)
FILES = [UUID(int=n) for n in range(1, 10)]


def card(file: int, number: int = 1, text: str = "- revenue: decimal") -> TableCard:
    return TableCard(FILES[file], f"file{file}.csv", number, text)


def hit(file: int, table: int) -> PassageHit:
    return PassageHit(uuid4(), FILES[file], f"file{file}.csv", 0, "", "card", (), "digital", 1.0, table)


def consultation(
    *cards: TableCard, hits: tuple[PassageHit, ...] = (), limit: int = 8_000, taken: list[Usage] | None = None
) -> Consultation:
    found, note = SearchResult(hits, "hybrid", ()), ([] if taken is None else taken).append
    return Consultation(Actor(uuid4(), uuid4()), cards or [card(0)], found, limit=limit, note=note)


def told(consultation: Consultation, question: str = "Revenue?") -> str:
    engine = FakeEngine(default=Script(say="no"))
    asyncio.run(
        consultation.hold(engine, LIKE, [Turn("user", "Hello."), Turn("assistant", "Hi."), Turn("user", question)])
    )
    (request,) = engine.requests
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert (request.temperature, request.max_tokens, request.request_id) == (0.0, 400, "run-1-tables-1")
    return request.messages[-1].content


def test_tables_that_the_search_found_come_first_and_a_file_has_one_number() -> None:
    found = consultation(card(0), card(0, 2), card(1), hits=(hit(1, 1), hit(0, 2)))
    prompt = told(found)
    heads = [line for line in prompt.splitlines() if line.startswith("File ")]
    assert heads == ["File 1, file1.csv", "File 2, file0.csv", "File 2, file0.csv"]


def test_what_is_told_is_bounded() -> None:
    assert len(consultation(*(card(n % 9, n) for n in range(40))).cards) == 8
    large = consultation(card(0, text="x" * 50_000), card(1), limit=1_024)
    assert len(large.cards) == 1
    assert len(told(large, "y" * 50_000)) < 1_024 * 3.2
    assert "[...]" in told(large)


@pytest.mark.parametrize("kind", ["die", "garbage", "error", "truncate", "refuse"])
def test_an_engine_that_fails_leaves_the_run_without(kind: str) -> None:
    engine = FakeEngine(faults=[Fault(kind, 503 if kind == "refuse" else 2)])
    consulted = asyncio.run(consultation().hold(engine, LIKE, [Turn("user", "Revenue?")]))
    assert (consulted.sources, consulted.lookups, consulted.problem) == ([], [], "It failed.")


def test_one_that_hangs_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consulting, "WITHIN_S", 0.2)
    engine = FakeEngine(faults=[Fault("hang", 2)])
    taken: list[Usage] = []
    consulted = asyncio.run(consultation(taken=taken).hold(engine, LIKE, [Turn("user", "Revenue?")]))
    assert (consulted.lookups, consulted.problem) == ([], "It took too long and was stopped.")
    assert 150 < consulted.ms < 5_000
    assert engine.running == {}, "the replica was told"
    assert [usage.completion_tokens for usage in taken] == [2]


async def test_a_cancel_is_not_swallowed() -> None:
    engine = FakeEngine(faults=[Fault("hang", 2)])
    task = asyncio.create_task(consultation().hold(engine, LIKE, [Turn("user", "Revenue?")]))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.running == {}
