"""Replicas that die, freeze, hang and talk garbage under streams, again and again; no reader may lose or see twice.

One round: half of the readers wait for their first token and half are in the middle of their answers when one of the
replicas fails. `run` does the rounds and reports.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise

from inference.engines.script import expected_text
from tests.client import Api, eventually
from tests.faults.readers import Background
from tests.stack import Stack

KINDS = ("kill", "hang", "garbage", "freeze", "ids", "error")
"""`kill`: SIGKILL. `freeze`: SIGSTOP. `hang`: it answers health checks and has no token. `ids`, `garbage`: nonsense.
`error`: an error event in each stream."""
HANGS = ("hang", "freeze")
PATIENCE_S = 90.0
_MIDDLE, _MIDDLE_TOKENS = "itl:100", 70
_WAITING, _WAITING_TOKENS = "ttft:4500 itl:20", 20
_HEALED_S = 2.5
_ENDLESS = 5_000


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
    key, report = stack.api_key(), Report()
    webs = [Api(stack.url(), key, timeout=30)]
    for kind in kinds:
        _round(stack, webs, kind, streams, report)
        report.rounds += 1
        if report.rounds % 10 == 0:
            print(f"-- {report}", flush=True)
    return report


def _round(stack: Stack, webs: list[Api], kind: str, streams: int, report: Report) -> None:
    middle = _start(webs, streams - streams // 2, _MIDDLE, _MIDDLE_TOKENS)
    waiting = _start(webs, streams // 2, _WAITING, _WAITING_TOKENS)
    readers = [*middle, *waiting]
    eventually(lambda: all(r.text for r in middle) and all(replica_of(r) for r in waiting), within=30)
    number = _busiest(stack, readers)
    name = f"@127.0.0.1:{stack.ports[f'replica-{number}']}"
    hit = {r: bool(r.text) for r in readers if replica_of(r).endswith(name) and not r.audit.reading.ended}
    struck = time.monotonic()
    _strike(stack, number, kind)
    _until_over(readers, struck)
    _heal(stack, number, kind)
    for reader in readers:
        _judge(reader, kind, struck, hit.get(reader), report)
    time.sleep(_HEALED_S)


def _start(webs: list[Api], count: int, prompt: str, tokens: int) -> list[Background]:
    readers = [Background(webs, tokens, prompt) for _ in range(count)]
    for reader in readers:
        reader.start()
    return readers


def replica_of(reader: Background) -> str:
    """Where the answer runs, as its reader was told; empty while it waits."""
    told = [event.data["replica"] for _, event in list(reader.events) if event.data.get("state") == "running"]
    return str(told[-1]) if told else ""


def _busiest(stack: Stack, readers: Sequence[Background]) -> int:
    """The number of the replica that has most of them: the one to strike."""
    places = [replica_of(reader) for reader in readers]

    def load(number: int) -> int:
        return sum(place.endswith(f":{stack.ports[f'replica-{number}']}") for place in places)

    return max(range(1, stack.replicas + 1), key=load)


def _strike(stack: Stack, number: int, kind: str) -> None:
    if kind == "kill":
        stack.kill9(f"replica-{number}")
    elif kind == "freeze":
        stack.pause(f"replica-{number}")
    else:
        stack.control_replica(number, now=kind)


def _heal(stack: Stack, number: int, kind: str) -> None:
    if kind == "kill":
        stack.restart(f"replica-{number}")
    elif kind == "freeze":
        stack.resume(f"replica-{number}")
    else:
        stack.control_replica(number, now="")


def _until_over(readers: Sequence[Background], since: float) -> None:
    """All ended, or nobody would wait longer."""
    for reader in readers:
        reader.join(max(0.0, since + PATIENCE_S - time.monotonic()))


def _judge(reader: Background, kind: str, struck: float, begun: bool | None, report: Report) -> None:
    audit, expected = reader.audit, expected_text(reader.tokens, reader.seed)
    report.answers += 1
    problem = ""
    if reader.is_alive() or reader.error is not None:
        problem = f"{reader.run_id}: {kind}: stuck after {len(reader.text)} characters {reader.error or ''}"
        report.stuck.append(problem)
    elif reader.text != expected or audit.reading.state != "completed":
        problem = f"{reader.run_id}: {kind}: {audit.reading.state}, {len(reader.text)} of {len(expected)} characters"
        problem += f" {audit.reading.error or ''}"
        if begun is not False:
            report.mismatched.append(problem)
    if audit.repeated or audit.lost:
        problem = f"{reader.run_id}: {kind}: {[*audit.repeated, *audit.lost][:2]}"
        report.doubled.append(problem)
    if begun is not None:
        report.victims.append(Victim(kind, begun, _pause(reader, struck), problem))


def _pause(reader: Background, since: float) -> float:
    """The longest time between two events of which the later came after a moment."""
    times = [at for at, _ in reader.events]
    return max((b - a for a, b in pairwise(times) if b > since), default=0.0)


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
