"""The kill loop: processes die in mid-stream, again and again, and nobody may notice more than a pause.

`run` does it and reports; the report counts what was lost, what came twice and how long readers waited.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle

from inference.engines.script import expected_text
from tests.client import Api
from tests.faults.people import PATIENCE_S, Asked, Person
from tests.stack import Stack

ASLEEP_S = 3.5
"""Longer than a lease: whoever sleeps this long was taken for dead."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`faults`: what happens, in turn: `web` and `runner` are killed, `sleep` freezes a runner past its lease."""

    faults: tuple[str, ...]
    streams: int = 20
    tokens: int = 120
    prompt: str = "itl:25"


def plan(kills: int, sleeps: int) -> Plan:
    """As many kills of webs as of runners, in an order that changes, with sleeps between."""
    chooser = random.Random(kills)
    faults = [kind for kind, _ in zip(cycle(("runner", "web")), range(kills), strict=False)]
    chooser.shuffle(faults)
    for n in range(sleeps):
        faults.insert((n + 1) * len(faults) // (sleeps + 1), "sleep")
    return Plan(tuple(faults))


@dataclass
class Report:
    kills: int = 0
    answers: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    resumed: list[float] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def resume_p95(self) -> float:
        waits = sorted(self.resumed)
        return waits[min(len(waits) - 1, int(len(waits) * 0.95))] if waits else 0.0

    def __str__(self) -> str:
        waits = sorted(self.resumed)
        middle = waits[len(waits) // 2] if waits else 0.0
        lines = [
            f"{self.kills} kills, {self.answers} answers, {len(waits)} interrupted readers: "
            f"resumed after {middle:.2f} s (p50), {self.resume_p95:.2f} s (p95), {max(waits, default=0):.2f} s (most)",
            f"lost {len(self.lost)}, duplicated {len(self.duplicated)}, problems {len(self.problems)}",
            ", ".join(f"{what}: {count}" for what, count in self.notes.items()),
            *self.lost[:5],
            *self.duplicated[:5],
            *self.problems[:5],
        ]
        return "\n".join(lines)


def run(stack: Stack, plan: Plan) -> Report:
    """Kill as planned while people read; then check everything that was ever acknowledged."""
    key = stack.api_key()
    webs = [Api(stack.url(number), key, timeout=20) for number in (1, 2)]
    stop = threading.Event()
    people = [Person(webs, plan.prompt, plan.tokens, stop) for _ in range(plan.streams)]
    report = Report()
    for person in people:
        person.start()
    try:
        _Killer(stack, people, webs, report).work(plan.faults)
    finally:
        stop.set()
    for person in people:
        person.join(PATIENCE_S + 30)
        if person.is_alive():
            report.problems.append(f"a reader is still waiting for {person.current}")
    _collect(report, people)
    check_store(stack, webs[0], [asked for person in people for asked in person.asked], plan, report)
    return report


class _Killer:
    def __init__(self, stack: Stack, people: list[Person], webs: list[Api], report: Report) -> None:
        self.stack, self.people, self.report = stack, people, report
        self.port_of = {f"web-{number}": web.port for number, web in enumerate(webs, 1)}
        self._numbers: Iterator[int] = cycle((1, 2))

    def work(self, faults: Iterable[str]) -> None:
        for kind in faults:
            self._until_most_read()
            number = next(self._numbers)
            if kind == "sleep":
                self._sleep(f"runner-{number}")
            else:
                self._kill(f"{kind}-{number}")

    def _until_most_read(self) -> None:
        """Wait for the middle of most answers, and for all readers to have got over the last fault."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            reading = sum(person.is_reading for person in self.people)
            if reading >= len(self.people) * 0.6 and not any(person.waits for person in self.people):
                return
            if not any(person.is_alive() for person in self.people):
                break
            time.sleep(0.02)
        self.report.problems.append(f"before kill {self.report.kills + 1} the readers did not get into their answers")

    def _kill(self, name: str) -> None:
        hit = self._readers_of(name)
        at = time.monotonic()
        self.stack.kill9(name)
        for person in hit:
            person.hit(at, takeover=name.startswith("runner"))
        self.report.kills += 1
        self.stack.restart(name)

    def _readers_of(self, name: str) -> list[Person]:
        reading = [person for person in self.people if person.is_reading]
        if name in self.port_of:
            return [person for person in reading if person.web and person.web.port == self.port_of[name]]
        rows = self.stack.services.postgres.ask(
            "select r.id from conversations_run r join conversations_runner o on o.id = r.owner_id"
            f" where r.state = 'running' and o.pid = {self.stack.pid(name)}",
            self.stack.name,
        )
        owned = set(rows.split())
        return [person for person in reading if person.current and person.current.run in owned]

    def _sleep(self, name: str) -> None:
        self.stack.pause(name)
        time.sleep(ASLEEP_S)
        self.stack.resume(name)
        # Time for the sleeper to do harm.
        time.sleep(1.0)


def _collect(report: Report, people: Iterable[Person]) -> None:
    for person in people:
        report.problems += person.problems
        report.resumed += person.resumed
        report.notes["posts tried again"] += person.retries
        report.notes["streams broken"] += person.breaks
        for asked in person.asked:
            report.answers += 1
            audit = asked.audit
            report.lost += [f"{asked.run}: {what}" for what in (*audit.lost, *audit.rewound)]
            report.duplicated += [f"{asked.run}: {what}" for what in audit.repeated]
            report.notes["told by the end"] += len(audit.late)
            report.notes["reconstructed"] += len(audit.reading.notices)


def check_store(stack: Stack, web: Api, asked: list[Asked], plan: Plan, report: Report) -> None:
    """Every acknowledged question and its answer are there, once, with the text that was streamed."""
    rows = {row["id"]: row for id in {one.conversation for one in asked} for row in web.messages(id)}
    for one in asked:
        question, answer = rows.get(one.question), rows.get(one.answer)
        if question is None or answer is None:
            report.lost.append(f"{one.run}: acknowledged and not there")
        elif answer["text"] != expected_text(plan.tokens, one.seed) or answer["text"] != one.audit.reading.text:
            report.lost.append(f"{one.run}: {answer['status']}, {len(answer['text'])} characters are saved")
    report.duplicated += [f"{id}: a message that nobody sent" for id in rows.keys() - _ids(asked)]
    for what, sql in _COUNTS.items():
        wrong = stack.services.postgres.ask(sql, stack.name)
        report.duplicated += [f"{line}: {what}" for line in wrong.split()]


def _ids(asked: Iterable[Asked]) -> set[str]:
    return {id for one in asked for id in (one.question, one.answer)}


_ENDED = "('completed', 'incomplete', 'cancelled', 'failed')"
_COUNTS = {
    "usage entries of one run": "select subject_id from accounts_usageentry group by 1 having count(*) > 1",
    "no usage entry": f"select id from conversations_run r where state in {_ENDED}"
    " and not exists (select 1 from accounts_usageentry where subject_id = r.id)",
    "ended more than once": "select id from conversations_run,"
    f" lateral (select count(*) n from jsonb_array_elements(transitions) t where t->>'state' in {_ENDED}) ends"
    " where ends.n > 1",
    "numbers with gaps": "select conversation_id from conversations_message group by 1"
    " having max(seq) <> count(*) or min(seq) <> 1",
    "never ended": f"select id from conversations_run where state not in {_ENDED}",
}
