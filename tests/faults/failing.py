"""Replicas that die, freeze, hang and talk garbage under streams, again and again; no reader may lose or see twice.

So many people read all the time and ask again. In each round one of the replicas fails, the busiest, while some of
its readers wait for their first token and others are in the middle of their answers; it is healed when they have news
from another, and the next round begins when all replicas are in use again. `run` does the rounds and reports.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from typing import TypeVar

from inference.engines.script import expected_text
from tests.client import Api, eventually
from tests.faults.readers import Background
from tests.stack import Stack

KINDS = ("kill", "hang", "garbage", "freeze", "ids", "error")
"""`kill`: SIGKILL. `freeze`: SIGSTOP. `hang`: it answers health checks and has no token. `ids`, `garbage`: nonsense.
`error`: an error event in each stream."""
HANGS = ("hang", "freeze")
PATIENCE_S = 90.0
_MIDDLE, _MIDDLE_TOKENS = "itl:60", 60
_WAITING, _WAITING_TOKENS = "ttft:2000 itl:20", 20
_FIRST_TOKENS = 60
_ENDLESS = 5_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Victim:
    """A reader whose replica failed. `begun`: it had text by then. `pause_s`: its longest wait for news after that."""

    kind: str
    begun: bool
    pause_s: float
    problem: str = ""


@dataclass
class Report:
    rounds: int = 0
    answers: int = 0
    victims: list[Victim] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)

    def before(self) -> list[Victim]:
        return [v for v in self.victims if not v.begun]

    def after(self) -> list[Victim]:
        return [v for v in self.victims if v.begun]

    @property
    def before_ratio(self) -> float:
        """Of the answers that had not begun when their replica failed, how many came whole."""
        before = self.before()
        return sum(not v.problem for v in before) / len(before) if before else 0.0

    def pauses(self, *kinds: str) -> list[float]:
        """Seconds that readers in mid-answer waited, in order."""
        return sorted(v.pause_s for v in self.after() if v.kind in kinds and not v.problem)

    def __str__(self) -> str:
        lines = [
            f"{self.rounds} failures, {self.answers} answers; hit {len(self.before())} before their first token"
            f" ({self.before_ratio:.4f} whole) and {len(self.after())} after it",
            f"stuck {len(self.stuck)}, doubled {len(self.doubled)}, mismatched {len(self.mismatched)}",
        ]
        lines += [
            f"{kind}: readers waited {pauses[len(pauses) // 2]:.2f} s (p50), {pauses[-1]:.2f} s (most)"
            for kind in KINDS
            if (pauses := self.pauses(kind))
        ]
        return "\n".join([*lines, *self.stuck[:5], *self.doubled[:5], *self.mismatched[:5]])


def kinds_for(rounds: int, kinds: Sequence[str] = KINDS) -> list[str]:
    return list(islice(cycle(kinds), rounds))


def run(stack: Stack, kinds: Iterable[str], *, streams: int) -> Report:
    crowd = Crowd(stack, streams)
    for kind in kinds:
        number = crowd.until_in_use()
        hit = crowd.strike(number, kind)
        crowd.until(lambda hit=hit: all(map(_has_moved, hit)))  # type: ignore[misc]
        _heal(stack, number, kind)
        replica = stack.programs[f"replica-{number}"]
        crowd.until(lambda replica=replica: replica.ready(replica))  # type: ignore[misc]
        crowd.report.rounds += 1
        if crowd.report.rounds % 10 == 0:
            print(f"-- {crowd.report}", flush=True)
    return crowd.end()


@dataclass(eq=False, slots=True)
class Seat:
    """Where one reader after another asks: always after the same answer, so that no conversation grows."""

    under: tuple[str, str]
    prompt: str
    tokens: int
    reader: Background
    hits: list[Hit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hit:
    """`places`: how often the reader had been told of a replica by then."""

    reader: Background
    kind: str
    struck: float
    begun: bool
    places: int


class Crowd:
    """Keeps so many readers going, every other one with a long wait for its first token; who has read an answer to its
    end is judged and asks again."""

    def __init__(self, stack: Stack, streams: int) -> None:
        self.stack, self.report = stack, Report()
        self.webs = [Api(stack.url(), stack.api_key(), timeout=30)]
        # All at once, so that they are spread over the replicas: each stays where its beginning is cached.
        first = [Background(self.webs, _FIRST_TOKENS, _MIDDLE) for _ in range(streams)]
        for reader in first:
            reader.start()
        eventually(lambda: all(reader.audit.reading.ended for reader in first), within=60)
        self.seats = [self._seat(reader, number) for number, reader in enumerate(first)]

    def _seat(self, first: Background, number: int) -> Seat:
        answer = first.posted["answer"]
        # In pairs, since the replicas took turns.
        prompt, tokens = (_MIDDLE, _MIDDLE_TOKENS) if number // 2 % 2 else (_WAITING, _WAITING_TOKENS)
        under = answer["conversation_id"], answer["id"]
        return Seat(under, prompt, tokens, self._ask(under, prompt, tokens))

    def _ask(self, under: tuple[str, str], prompt: str, tokens: int) -> Background:
        reader = Background(self.webs, tokens, prompt, under)
        reader.start()
        return reader

    def tend(self, *, again: bool = True) -> None:
        """Judge those who have ended, or waited for longer than anybody would, and let them ask again."""
        for seat in list(self.seats):
            if seat.reader.is_alive() and time.monotonic() - seat.reader.asked_at < PATIENCE_S:
                continue
            _judge(seat.reader, seat.hits, self.report)
            if again:
                seat.reader, seat.hits = self._ask(seat.under, seat.prompt, seat.tokens), []
            else:
                self.seats.remove(seat)

    def until(self, wanted: Callable[[], T | None], within: float = PATIENCE_S) -> T | None:
        """Tend until something is as wanted; None when it is not in time."""
        deadline = time.monotonic() + within
        while not (found := wanted()) and time.monotonic() < deadline:
            self.tend()
            time.sleep(0.05)
        return found

    def until_in_use(self) -> int:
        """Every replica has readers of both kinds; the number of the one that has most of all."""
        least = max(1, len(self.seats) // 10)
        numbers = range(1, self.stack.replicas + 1)

        def busiest() -> int | None:
            found = {number: self._on(number) for number in numbers}
            begun = {number: sum(bool(r.text) for r in readers) for number, readers in found.items()}
            if any(begun[n] < least or len(found[n]) - begun[n] < least for n in numbers):
                return None
            return max(numbers, key=lambda number: len(found[number]))

        number = self.until(busiest)
        assert number, "a replica was not used again"
        return number

    def strike(self, number: int, kind: str) -> list[Hit]:
        readers = self._on(number)
        struck = time.monotonic()
        hits = [Hit(reader, kind, struck, bool(reader.text), len(_places(reader))) for reader in readers]
        _strike(self.stack, number, kind)
        for seat in self.seats:
            seat.hits += [hit for hit in hits if hit.reader is seat.reader]
        return hits

    def end(self) -> Report:
        """The report, once all have read their answers."""
        while self.seats:
            self.tend(again=False)
            time.sleep(0.05)
        return self.report

    def _on(self, number: int) -> list[Background]:
        """Who reads an answer that runs on a replica."""
        name = f"@127.0.0.1:{self.stack.ports[f'replica-{number}']}"
        readers = [seat.reader for seat in self.seats if not seat.reader.audit.reading.ended]
        return [reader for reader in readers if replica_of(reader).endswith(name)]


def _places(reader: Background) -> list[str]:
    """The replicas that the answer ran on, as its reader was told."""
    return [str(event.data["replica"]) for _, event in list(reader.events) if event.data.get("state") == "running"]


def replica_of(reader: Background) -> str:
    """Where the answer runs; empty while it waits."""
    return next(reversed(_places(reader)), "")


def _has_moved(hit: Hit) -> bool:
    return not hit.reader.is_alive() or len(_places(hit.reader)) > hit.places


def _strike(stack: Stack, number: int, kind: str) -> None:
    if kind == "kill":
        stack.kill9(f"replica-{number}")
    elif kind == "freeze":
        stack.pause(f"replica-{number}")
    else:
        stack.control_replica(number, now=kind)


def _heal(stack: Stack, number: int, kind: str) -> None:
    if kind == "kill":
        stack.restart(f"replica-{number}", wait=False)
    elif kind == "freeze":
        stack.resume(f"replica-{number}")
    else:
        stack.control_replica(number, now="")


def _judge(reader: Background, hits: Sequence[Hit], report: Report) -> None:
    audit, expected = reader.audit, expected_text(reader.tokens, reader.seed)
    kinds = "+".join(hit.kind for hit in hits) or "untouched"
    report.answers += 1
    problem = ""
    if reader.is_alive() or reader.error is not None:
        problem = f"{reader.run_id}: {kinds}: stuck after {len(reader.text)} characters {reader.error or ''}"
        report.stuck.append(problem)
    elif reader.text != expected or audit.reading.state != "completed":
        problem = f"{reader.run_id}: {kinds}: {audit.reading.state}, {len(reader.text)} of {len(expected)} characters"
        problem += f" {audit.reading.error or ''}"
        if not hits or any(hit.begun for hit in hits):
            report.mismatched.append(problem)
    if audit.repeated or audit.lost:
        problem = f"{reader.run_id}: {kinds}: {[*audit.repeated, *audit.lost][:2]}"
        report.doubled.append(problem)
    ends = [*(hit.struck for hit in hits[1:]), float("inf")]
    for hit, end in zip(hits, ends, strict=False):
        report.victims.append(Victim(hit.kind, hit.begun, _pause(reader, hit.struck, end), problem))


def _pause(reader: Background, since: float, until: float) -> float:
    """The longest time between two events of which the later came between two moments."""
    times = [at for at, _ in reader.events]
    return max((b - a for a, b in pairwise(times) if since < b <= until), default=0.0)


# ---------------------------------------------------------------- cancelling


def cancel_delays_ms(stack: Stack, prompt: str, times: int, *, first_token: bool) -> list[float]:
    """Milliseconds from a person's cancel until the replica had dropped the answer, in order. One replica."""
    web, delays = Api(stack.url(), stack.api_key(), timeout=30), []
    for _ in range(times):
        before = stats(stack)["aborted"]
        reader = Background([web], _ENDLESS, prompt)
        reader.start()
        eventually(lambda reader=reader: bool(reader.text) if first_token else bool(replica_of(reader)))  # type: ignore[misc]
        eventually(lambda: stats(stack)["active"] == 1)
        asked = time.monotonic()
        web.cancel(reader.run_id)
        after = eventually(lambda before=before: s if (s := stats(stack))["aborted"] > before else None, every=0.01)  # type: ignore[misc]
        # The replica's clock is this machine's: loop.time() is CLOCK_MONOTONIC.
        delays.append((after["aborted_at"] - asked) * 1000)
        reader.join(10)
    return sorted(delays)


def stats(stack: Stack, number: int = 1) -> dict[str, float]:
    with urllib.request.urlopen(f"{stack.replica_url(number)}/stats", timeout=5) as answer:
        found: dict[str, float] = json.load(answer)
    return found
