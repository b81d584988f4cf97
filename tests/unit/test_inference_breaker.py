"""The breaker's states and pauses, on a clock of the test's own."""

from __future__ import annotations

import pytest

from inference.breaker import PAUSE_MOST_S, QUARANTINE_AFTER, Breaker, BreakerState


def fail_probe(breaker: Breaker, now: float) -> None:
    breaker.half_open()
    breaker.settle(ok=False, now=now)


def test_a_failure_opens_and_only_a_probe_closes() -> None:
    breaker = Breaker()
    breaker.fail(10.0, 11.0)
    assert breaker.state is BreakerState.OPEN
    assert not breaker.is_due(11.5)
    assert breaker.is_due(12.2)
    breaker.succeed()
    assert breaker.state is BreakerState.OPEN, "an older answer that ended well proves nothing"
    breaker.half_open()
    assert not breaker.is_due(99.0), "one probe at a time"
    breaker.settle(ok=True, now=13.0)
    assert breaker.is_closed


def test_pauses_double_and_are_bounded() -> None:
    breaker, pauses = Breaker(), []
    breaker.fail(0.0, 0.0)
    for _ in range(9):
        pauses.append(breaker.until)
        fail_probe(breaker, 0.0)
    for pause, expected in zip(pauses, (1, 2, 4, 8, 16, 30, 30, 30, 30), strict=True):
        assert expected * 0.9 <= pause <= expected * 1.1
    assert max(pauses) <= PAUSE_MOST_S * 1.1


def test_a_replica_that_passes_probes_and_fails_answers_rests_ever_longer() -> None:
    breaker = Breaker()
    for n in range(3):
        breaker.fail(100.0 * n + 1, 100.0 * n + 1)
        breaker.half_open()
        breaker.settle(ok=True, now=100.0 * n + 50)
    assert breaker.failures == 3
    breaker.succeed()
    assert breaker.failures == 0


@pytest.mark.parametrize("asked_at", [0.0, 4.9])
def test_what_was_asked_before_it_closed_does_not_open_it_again(asked_at: float) -> None:
    breaker = Breaker()
    breaker.fail(0.0, 1.0)
    breaker.half_open()
    breaker.settle(ok=True, now=5.0)
    breaker.fail(asked_at, 6.0)
    assert breaker.is_closed
    breaker.fail(5.1, 6.0)
    assert not breaker.is_closed


def test_quarantine_begins_after_a_row_and_ends_with_a_probe() -> None:
    breaker = Breaker()
    breaker.fail(0.0, 0.0)
    for _ in range(QUARANTINE_AFTER - 1):
        assert not breaker.is_quarantined
        fail_probe(breaker, 0.0)
    assert breaker.is_quarantined
    breaker.half_open()
    assert breaker.is_quarantined
    breaker.settle(ok=True, now=1.0)
    assert not breaker.is_quarantined
