"""Routing and admission under loads that no test machine can make: `python -m inference.simulate`.

A discrete-event simulation in virtual time. Runs arrive with a question, get a model from the router and a place from
the scripts that decide for real ones (no copies), are "generated" by replicas whose speed is fixed, and end; only the
clock, the questions and the replicas are not real. Needs a Valkey with an empty database, which it empties again.

Responsible for: events, and what came of them. Leaves to `simulated_load` who asks what, and of which replicas.
`tests/bench/inference.py` makes figures with goals of it.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple

from inference.admission.policy import DEFAULT, Policy
from inference.admission.stats import estimate_error
from inference.admission.types import Ask, Tier
from inference.admission.verbs import Granted, Refused, Verbs
from inference.pipe import Pipe
from inference.queueing import WaitState
from inference.registry import Record
from inference.routing.candidates import candidates_of
from inference.routing.router import AUTO, route
from inference.routing.scorer import load_scorer
from inference.routing.types import Candidate, Question, RoutingPolicy
from inference.settings import read_settings
from inference.simulated_load import Source, Speed, people, questions, replicas

_EVERYTHING = RoutingPolicy()


@dataclass(eq=False, slots=True)
class Run:
    """Times are virtual seconds. `level`: of the model that routing chose. `estimate_s`: what was said when the wait
    began. `refused`: the code. `routed_in_s` and `decided_in_s`: real seconds, for the model and until the first
    reply."""

    source: Source
    ask: Ask
    used: int
    lasts_s: float
    asked: float
    text: str = ""
    level: int = 0
    estimate_s: float | None = None
    granted: float | None = None
    ended: float | None = None
    refused: str = ""
    routed_in_s: float = 0.0
    decided_in_s: float = 0.0

    @property
    def waited_s(self) -> float:
        return 0.0 if self.granted is None else self.granted - self.asked


class Event(NamedTuple):
    """`kind` is arrive, end, give_up or beat. Of two at the same time the one that was planned first comes first."""

    at: float
    order: int
    kind: str
    run: Run | None


@dataclass
class Simulation:
    """One load on one set of replicas, of one model or several. `runs` has every run that arrived, in order."""

    verbs: Verbs
    policy: Policy
    replicas: Sequence[Record]
    speed: Speed
    sources: Sequence[Source]
    seed: int = 1
    runs: list[Run] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)
    _waiting: dict[str, Run] = field(default_factory=dict)
    _running: Counter[str] = field(default_factory=Counter)
    _candidates: tuple[Candidate, ...] = ()
    _unfinished: int = 0

    async def play(self) -> list[Run]:
        """Until every run has ended or was refused."""
        await self.verbs.pipe.call("FLUSHDB")
        self.verbs.epoch = ""
        await self.verbs.beat(0.0, [])
        self._candidates = candidates_of(self.replicas)
        for candidate in self._candidates:
            of_model = [record.replica for record in self.replicas if record.card.id == candidate.id]
            await self.verbs.set_replicas(0.0, candidate.id, of_model)
        self._plan_arrivals()
        self._unfinished = len(self.runs)
        self._plan(self.policy.heartbeat_s, "beat")
        while self._unfinished:
            event = heapq.heappop(self._events)
            match event:
                case Event(at, _, "arrive", Run() as run):
                    await self._arrive(at, run)
                case Event(at, _, "end", Run() as run):
                    await self._end(at, run)
                case Event(at, _, "give_up", Run() as run) if run.ask.ticket in self._waiting:
                    await self._give_up(at, run)
                case Event(at, _, "beat", _):
                    self._look()
                    await self.verbs.beat(at * 1000, [])
                    self._plan(at + self.policy.heartbeat_s, "beat")
                    await self._news(at)
        return self.runs

    def _plan(self, at: float, kind: str, run: Run | None = None) -> None:
        heapq.heappush(self._events, Event(at, next(self._order), kind, run))

    def _look(self) -> None:
        """What routing knows of load is as old as the registry: it changes with each beat."""
        slots: Counter[str] = Counter()
        for record in self.replicas:
            slots[record.card.id] += record.replica.slots
        self._candidates = tuple(replace(c, pressure=self._running[c.id] / slots[c.id]) for c in self._candidates)

    def _plan_arrivals(self) -> None:
        dice = random.Random(self.seed)  # noqa: S311 - a load, not a secret
        texts = questions(self.seed)
        for source in self.sources:
            at = source.begin_s + dice.expovariate(source.per_s)
            while at < source.end_s:
                self.runs.append(self._draw(source, at, dice))
                at += dice.expovariate(source.per_s)
        self.runs.sort(key=lambda run: run.asked)
        for run in self.runs:
            run.text = next(texts)
            self._plan(run.asked, "arrive", run)

    def _draw(self, source: Source, at: float, dice: random.Random) -> Run:
        speed = self.speed
        prompt, answer = dice.randint(*speed.prompt), dice.randint(*speed.answer)
        ask = Ask(
            ticket=f"{len(self.runs)}",
            model=AUTO,
            lane=source.lane,
            tier=source.tier,
            user=source.user,
            organization=source.user,
            prompt_tokens=prompt,
            output_tokens=speed.reserved,
        )
        lasts_s = prompt * speed.prompt_token_s + answer * speed.token_s
        return Run(source, ask, prompt + answer, lasts_s, at)

    def _route(self, run: Run) -> None:
        began = time.perf_counter()
        question = Question(run.text, 0, run.ask.prompt_tokens, AUTO, organization=run.ask.organization)
        decision = route(question, self._candidates, policy=_EVERYTHING, scorer=load_scorer())
        run.routed_in_s = time.perf_counter() - began
        run.level, run.ask = decision.level, replace(run.ask, model=decision.model)

    async def _arrive(self, at: float, run: Run) -> None:
        self._route(run)
        began = time.perf_counter()
        reply = await self.verbs.ask(at * 1000, run.ask)
        run.decided_in_s = time.perf_counter() - began
        match reply:
            case Granted():
                self._begin(at, run)
            case WaitState():
                run.estimate_s = reply.estimated_wait_s
                self._waiting[run.ask.ticket] = run
                self._plan(at + self.policy.max_wait_s[run.ask.lane], "give_up", run)
            case Refused(code):
                self._refuse(run, code)
            case _:
                raise RuntimeError(f"{reply} from replicas that are always there")
        await self._news(at)

    def _begin(self, at: float, run: Run) -> None:
        run.granted = at
        self._running[run.ask.model] += 1
        self._plan(at + run.lasts_s, "end", run)

    def _refuse(self, run: Run, code: str) -> None:
        run.refused = code
        self._unfinished -= 1

    async def _end(self, at: float, run: Run) -> None:
        run.ended = at
        self._running[run.ask.model] -= 1
        self._unfinished -= 1
        await self.verbs.release(at * 1000, run.ask.ticket, run.used)
        await self._news(at)

    async def _give_up(self, at: float, run: Run) -> None:
        del self._waiting[run.ask.ticket]
        self._refuse(run, "waited_too_long")
        await self.verbs.release(at * 1000, run.ask.ticket, 0)
        await self._news(at)

    async def _news(self, at: float) -> None:
        """Those who were granted a place meanwhile."""
        if not self._waiting:
            return
        for item in await self.verbs.pipe.call("LPOP", f"adm:feed:{self.verbs.owner}", 1_000) or ():
            self._begin(at, self._waiting.pop(item.decode().partition("\n")[0]))


# ---------------------------------------------------------------- what came of it


def users_of(runs: Iterable[Run], tier: Tier) -> list[str]:
    return sorted({run.ask.user for run in runs if run.ask.tier is tier})


def least_jain(runs: Sequence[Run], inside: Sequence[Run]) -> float:
    """Of the tiers: the fairness of what was served, `inside`, among all users who asked."""
    return min(jain((run for run in inside if run.ask.tier is tier), users_of(runs, tier)) for tier in Tier)


def goodput(runs: Iterable[Run], begin_s: float, end_s: float) -> float:
    """Tokens a second of the runs that ended in a span of time."""
    return sum(run.used for run in runs if run.ended is not None and begin_s <= run.ended < end_s) / (end_s - begin_s)


def served(runs: Iterable[Run], begin_s: float, end_s: float) -> Iterator[Run]:
    """Runs that began in a span of time."""
    return (run for run in runs if run.granted is not None and begin_s <= run.granted < end_s)


def tier_shares(runs: Iterable[Run]) -> dict[Tier, float]:
    tokens: Counter[Tier] = Counter()
    for run in runs:
        tokens[run.ask.tier] += run.used
    return {tier: tokens[tier] / max(1, tokens.total()) for tier in Tier}


def jain(runs: Iterable[Run], users: Sequence[str]) -> float:
    """Jain's index of fairness, (sum x)^2 / (n sum x^2), of the users' tokens: 1 when all have the same."""
    tokens: Counter[str] = Counter()
    for run in runs:
        tokens[run.ask.user] += run.used
    amounts = [tokens[user] for user in users]
    return sum(amounts) ** 2 / (len(amounts) * max(1, sum(amount**2 for amount in amounts)))


def estimate_errors(runs: Iterable[Run]) -> list[float]:
    """Of the runs that waited and were told how long."""
    return [
        estimate_error(run.estimate_s, run.waited_s)
        for run in runs
        if run.estimate_s is not None and run.granted is not None
    ]


def levels_chosen(runs: Iterable[Run]) -> dict[int, float]:
    """Of all runs, which share routing gave to each level."""
    chosen = Counter(run.level for run in runs)
    return {level: count / chosen.total() for level, count in sorted(chosen.items())}


def median_us(seconds: Iterable[float]) -> float:
    return median(list(seconds) or [0.0]) * 1e6


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# ---------------------------------------------------------------- the command


async def report(url: str, count: int, slots: int, levels: int, load: float, seconds: float) -> str:
    """One load, in words."""
    pipe = Pipe(url)
    try:
        if await pipe.call("DBSIZE"):
            raise SystemExit("The database is not empty: name another one.")
        speed = Speed()
        sources = people(load * count * slots / speed.mean_s, 0.0, seconds)
        served_by = replicas(count, slots, levels)
        simulation = Simulation(Verbs(pipe, "simulation", DEFAULT), DEFAULT, served_by, speed, sources)
        began = time.perf_counter()
        runs = await simulation.play()
        took = time.perf_counter() - began
        await pipe.call("FLUSHDB")
    finally:
        await pipe.close()
    inside = list(served(runs, seconds / 3, seconds))
    errors = estimate_errors(inside)
    shares = ", ".join(f"{tier} {share:.3f}" for tier, share in tier_shares(inside).items())
    chosen = ", ".join(f"{level}: {share:.3f}" for level, share in levels_chosen(runs).items())
    routing, admission = median_us(r.routed_in_s for r in runs), median_us(r.decided_in_s for r in runs)
    lines = (
        f"{len(runs)} runs in {seconds:g} s, {load:g} times what {count} replicas with {slots} slots can do",
        f"simulated in    {took:.1f} s, {took / max(1, len(runs)) * 1e6:.0f} us a run",
        f"decisions       routing {routing:.0f} us, admission {admission:.0f} us (median)",
        f"levels chosen   {chosen or 'none'}",
        f"goodput         {goodput(runs, seconds / 3, seconds):.0f} tokens/s",
        f"shares          {shares}",
        f"Jain's index    {least_jain(runs, inside):.3f} (the least of the tiers)",
        f"refused         {dict(Counter(run.refused for run in runs if run.refused))}",
        f"waits           median {median([run.waited_s for run in inside] or [0.0]):.1f} s",
        f"estimate error  {f'median {median(errors):.2f}' if errors else 'nobody waited'}",
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redis-url", default=read_settings().redis_url, help="a Valkey whose database is empty")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--levels", type=int, default=1, help="models of different strength among the replicas")
    parser.add_argument("--load", type=float, default=10.0, help="times what the replicas can do")
    parser.add_argument("--seconds", type=float, default=300.0, help="virtual time in which runs arrive")
    args = parser.parse_args()
    if not args.redis_url:
        parser.error("--redis-url or REDIS_URL is needed")
    if not 1 <= args.levels <= args.replicas:
        parser.error("--levels is at least 1, and each level needs a replica")
    text = asyncio.run(report(args.redis_url, args.replicas, args.slots, args.levels, args.load, args.seconds))
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
