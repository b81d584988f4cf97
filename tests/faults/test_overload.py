"""More questions than places, on real processes: what was accepted is answered, and no place is left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.client import Api, Refused, eventually
from tests.factories.admission import connect, leaks
from tests.faults.readers import Background, check
from tests.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
SLOTS = 2


def all_at_once(webs: list[Api], count: int) -> tuple[list[Background], list[Refused]]:
    """Questions posted at the same moment: those that were accepted, being read, and the refusals."""
    barrier = threading.Barrier(count)

    def post(number: int) -> Background | Refused:
        barrier.wait(timeout=30)
        try:
            return Background(webs[number % 2 :] + webs[: number % 2], 20, "itl:20")
        except Refused as refused:
            return refused

    with ThreadPoolExecutor(count) as threads:
        outcomes = list(threads.map(post, range(count)))
    readers = [outcome for outcome in outcomes if isinstance(outcome, Background)]
    for reader in readers:
        reader.start()
    return readers, [outcome for outcome in outcomes if isinstance(outcome, Refused)]


def nothing_is_held(stack: Stack) -> bool:
    valkey = connect(stack.valkey.url())
    return leaks(valkey) == [] and valkey.zcard("adm:deadlines") == 0


@pytest.mark.parametrize("kill", [False, True], ids=["undisturbed", "runner killed"])
def test_all_that_was_accepted_is_answered(start_stack: Callable[..., Stack], kill: bool) -> None:
    stack = start_stack(webs=2, runners=2, slots=SLOTS, settings="tests.live_settings")
    key = stack.api_key()
    webs = [Api(stack.url(number), key) for number in (1, 2)]
    readers, refused = all_at_once(webs, 24)
    assert refused == [], "the line has room for them"
    waiting = [view for view in (webs[0].run(reader.run_id) for reader in readers[-8:]) if view["queue_position"]]
    assert waiting, "some wait, and are told where"
    if kill:
        time.sleep(0.3)
        stack.kill9("runner-1")
        stack.restart("runner-1")
    check(readers)
    eventually(lambda: nothing_is_held(stack), within=30)


def test_a_runner_that_does_not_give_places_back_is_noticed(start_stack: Callable[..., Stack]) -> None:
    """The checker of this file on a seeded bug: all is answered, and yet it must fail."""
    stack = start_stack(webs=1, runners=0, slots=16, settings="tests.live_settings")
    stack.launch("runner-1", ("-m", "tests.faults.leaking"), lambda me: me.printed("runner.ready"))
    web = Api(stack.url(1), stack.api_key())
    readers, refused = all_at_once([web], 2)
    assert refused == []
    check(readers)
    with pytest.raises(AssertionError, match="not within"):
        eventually(lambda: nothing_is_held(stack), within=5)
    valkey = connect(stack.valkey.url())
    assert all(valkey.hget(f"adm:t:{reader.run_id.replace('-', '')}", "replica") for reader in readers)


def test_who_asks_too_much_is_refused_with_a_time_and_nothing_is_written(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(webs=2, runners=1, slots=SLOTS, settings="tests.faults.strict_settings")
    key = stack.api_key()
    webs = [Api(stack.url(number), key) for number in (1, 2)]
    readers, refused = all_at_once(webs, 24)
    assert 4 <= len(readers) <= 8, "the line has room for four; those that end while others still post make room"
    assert refused
    assert {refusal.status for refusal in refused} == {429}
    assert all(int(refusal.reply.headers["retry-after"]) >= 1 for refusal in refused)
    check(readers)
    written = stack.services.postgres.ask("select count(*) from conversations_run", stack.name)
    assert int(written) == len(readers)
    eventually(lambda: nothing_is_held(stack), within=30)
