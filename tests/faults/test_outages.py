"""Whole services go away in mid-stream: Valkey with all it knew, a replica, a runner in good order, Postgres."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inference.engines.script import expected_text
from tests.client import Api, Reply, eventually
from tests.faults.readers import Background, check, start, until
from tests.services import Services
from tests.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
SETTINGS = "tests.live_settings"
SOON_S = 10.0
"""News that the fault itself brings; what is only noticed by silence takes longer (HANG_S)."""


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, webs=2, runners=2, replicas=2, slots=64, settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def webs(stack: Stack) -> list[Api]:
    key = stack.api_key()
    return [Api(stack.url(1), key), Api(stack.url(2), key)]


def sql(stack: Stack, query: str) -> list[str]:
    return stack.services.postgres.ask(query, stack.name).split()


def attempts(stack: Stack, readers: list[Background]) -> dict[str, int]:
    ids = ",".join(f"'{reader.run_id}'" for reader in readers)
    rows = sql(stack, f"select id || '=' || attempt from conversations_run where id in ({ids})")
    return {id: int(attempt) for id, _, attempt in (row.partition("=") for row in rows)}


# ------------------------------------------------------------------ Valkey


def test_valkey_killed_and_restarted_empty(stack: Stack, webs: list[Api]) -> None:
    readers = start(webs, 10, tokens=400, prompt="itl:25")
    readers += start(webs[::-1], 4, tokens=400, prompt="itl:25")
    stack.kill9("valkey")
    late = webs[0].ask(webs[0].new_conversation(), "n:20 seed:late")
    time.sleep(1.5)
    assert not any(reader.audit.reading.ended for reader in readers)
    stack.restart("valkey", empty=True)
    back = time.monotonic()
    check(readers)
    assert all("snapshot" in reader.kinds() for reader in readers), "each was told the whole text again"
    assert all(reader.audit.rewound == [] for reader in readers)
    assert max(reader.gap_after(back) for reader in readers) < SOON_S
    assert set(attempts(stack, readers).values()) == {1}, "the answers went on all the time"
    # Asked while nothing could be handed off or logged: the runners' sweep found it.
    eventually(lambda: webs[1].run(late["run"]["id"])["state"] == "completed")
    assert webs[1].messages(late["answer"]["conversation_id"])[1]["text"] == expected_text(20, "late")


def test_valkey_restarted_with_what_it_had(stack: Stack, webs: list[Api]) -> None:
    readers = start(webs, 6, tokens=150, prompt="itl:25")
    stack.restart("valkey")
    check(readers)
    assert set(attempts(stack, readers).values()) == {1}


# ------------------------------------------------------------------ a replica


def test_a_replica_killed_in_mid_answer(stack: Stack, webs: list[Api]) -> None:
    readers = start(webs, 12, tokens=400, prompt="itl:20")
    hit = [reader for reader in readers if replica_of(reader).endswith(stack.replica_url(1).rpartition(":")[2])]
    assert 0 < len(hit) < len(readers), "both replicas were at work"
    stack.kill9("replica-1")
    at = time.monotonic()
    check(readers)
    for reader in hit:
        told = [event.data for _, event in reader.events if event.type == "reconstructed"]
        assert [(one["attempt"], 0 < one["at"] < len(reader.text)) for one in told] == [(1, True)]
        assert reader.audit.is_clean
        assert reader.gap_after(at) < SOON_S
        assert replica_of(reader).endswith(stack.replica_url(2).rpartition(":")[2])
    saved = sql(stack, f"select reconstructed->0->>'at' from conversations_run where id = '{hit[0].run_id}'")
    assert saved == [str(hit[0].audit.reading.notices[0]["at"])]
    assert all(reader.kinds().count("reconstructed") == 0 for reader in readers if reader not in hit)
    stack.restart("replica-1")


def replica_of(reader: Background) -> str:
    states = [event.data for _, event in reader.events if event.type == "state" and event.data["state"] == "running"]
    replica: str = states[-1]["replica"]
    return replica.partition("?")[0]


@pytest.mark.parametrize("fault", ["die:20", "garbage:20", "error:20", "truncate:20", "abort:20"])
def test_an_answer_that_breaks_off_goes_on(stack: Stack, webs: list[Api], fault: str) -> None:
    (reader,) = start(webs, 1, tokens=60, prompt=f"itl:5 {fault}")
    check([reader])
    assert reader.kinds().count("reconstructed") == 1
    assert reader.audit.is_clean


# ------------------------------------------------------------------ a runner in good order


def test_a_runner_that_is_told_to_stop_hands_over(stack: Stack, webs: list[Api]) -> None:
    short = start(webs, 4, tokens=60, prompt="itl:20")
    long = start(webs, 8, tokens=800, prompt="itl:20")
    owned = set(
        sql(
            stack,
            "select r.id from conversations_run r join conversations_runner o on o.id = r.owner_id"
            f" where r.state = 'running' and o.pid = {stack.pid('runner-1')}",
        )
    )
    moved = [reader for reader in long if reader.run_id in owned]
    assert moved, "it had something to do"
    assert stack.terminate("runner-1", patience=30) == 0
    assert not any(reader.audit.reading.ended for reader in moved), "it does not wait for long answers"
    gone = f"select count(*) from conversations_runner where pid = {stack.pid('runner-1')}"
    assert sql(stack, gone) == ["0"], "so no lease has to run out"
    asked = webs[0].ask(webs[0].new_conversation(), "n:10 seed:meanwhile")
    assert webs[0].read(asked["run"]["id"]).is_clean
    check([*short, *long])
    assert all(reader.audit.is_clean for reader in (*short, *long))
    assert set(attempts(stack, short).values()) == {1}, "short answers ended where they were"
    tries = attempts(stack, long)
    assert {id for id, attempt in tries.items() if attempt == 2} == {reader.run_id for reader in moved}
    stack.restart("runner-1")


def test_a_web_that_is_told_to_stop_sends_its_readers_on(stack: Stack, webs: list[Api]) -> None:
    readers = start(webs, 6, tokens=400, prompt="itl:20")
    stack.terminate("web-1", patience=30)
    check(readers)
    assert all(reader.audit.is_clean for reader in readers)
    stack.restart("web-1")


# ------------------------------------------------------------------ Postgres


@pytest.fixture
def own_services() -> Iterator[Services]:
    """Servers that nobody else uses."""
    own = Services()
    yield own
    own.stop()


def test_postgres_away_for_five_seconds(own_services: Services) -> None:
    with Stack(own_services, runners=2, slots=64, settings=SETTINGS) as stack:
        web = Api(stack.url(), stack.api_key())
        conversation = web.new_conversation()
        readers = start([web], 6, tokens=500, prompt="itl:20")
        before = [len(reader.text) for reader in readers]
        own_services.stop_postgres()
        stopped = time.monotonic()
        refused = web.call(
            "POST", f"/api/conversations/{conversation}/messages", {"client_id": str(uuid.uuid4()), "text": "Now?"}
        )
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert "database" in refused.json["detail"]
        time.sleep(max(0.0, stopped + 5 - time.monotonic()))
        during = [len(reader.text) for reader in readers]
        assert all(now > then + 300 for now, then in zip(during, before, strict=True)), "live readers went on"
        own_services.start_postgres()
        question = {"client_id": str(uuid.uuid4()), "text": "n:5 seed:after"}
        # Connections that were pooled before the stop may each fail once.
        posted = patiently(lambda: web.call("POST", f"/api/conversations/{conversation}/messages", question))
        check(readers)
        assert all(reader.audit.is_clean for reader in readers)
        assert set(attempts(stack, readers).values()) == {1}, "no runner was dead, so none lost its runs to the other"
        eventually(
            lambda: patiently(lambda: web.call("GET", f"/api/runs/{posted['run']['id']}"))["state"] == "completed"
        )
        rows = patiently(lambda: web.call("GET", f"/api/conversations/{conversation}/messages"))["results"]
        assert [row["text"] for row in rows] == ["n:5 seed:after", expected_text(5, "after")]


def patiently(call: Callable[[], Reply]) -> Any:
    """The answer once it is no longer that the database is away."""

    def look() -> Reply | None:
        reply = call()
        return None if reply.status == 503 else reply

    return eventually(look, within=20).must_be(200, 201)


def test_answers_that_end_while_postgres_is_away_are_kept(own_services: Services) -> None:
    with Stack(own_services, slots=64, settings=SETTINGS) as stack:
        web = Api(stack.url(), stack.api_key())
        readers = start([web], 4, tokens=120, prompt="itl:20")
        own_services.stop_postgres()
        time.sleep(4)
        assert not any(reader.audit.reading.ended for reader in readers), "an end that is not stored is not told"
        own_services.start_postgres()
        check(readers)
        assert all(reader.audit.is_clean for reader in readers)
        until(
            readers,
            lambda reader: bool(patiently(lambda: web.call("GET", f"/api/runs/{reader.run_id}"))["finished_at"]),
        )
        assert sql(stack, "select count(*) from accounts_usageentry") == ["4"]
