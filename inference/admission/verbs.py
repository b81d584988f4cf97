"""What can be said to the shared admission, one script a verb; time is told by the caller.

Responsible for: arguments and replies. Leaves to `client` whose tickets they are, and to `lua/` every decision.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import redis

from inference.admission.policy import Policy
from inference.admission.types import Ask, Lane, Standing, Tier, Waiting
from inference.pipe import Pipe, Script
from inference.protocol import Overloaded, ReplicaInfo
from inference.queueing import WaitState

LUA = Path(__file__).with_name("lua")
LIBRARY = ("state.lua", "line.lua", "grants.lua")
VERBS = ("ask", "beat", "capacity", "hold", "release", "replicas", "where")
# What is told for a replica that does not say how much it can hold.
UNBOUNDED = 10**12
MOST_AVOIDED = 32
MOST_PREFIXES = 4


@dataclass(frozen=True, slots=True)
class Granted:
    replica: str


@dataclass(frozen=True, slots=True)
class Refused:
    """`retry_s` is None when asking again is of no use. `detail`: the number that the code is about, as text."""

    code: str
    retry_s: float | None
    detail: str

    def error(self, ask: Ask) -> Overloaded:
        """The same as an error, with the reason in words."""
        reasons = {
            "queue_full": f"{self.detail} requests are already waiting",
            "wait_too_long": f"the wait would be about {self.detail.partition('.')[0]} s",
            "user_limit": f"you have as many answers in progress as you may, {self.detail}",
            "user_tokens": f"you have used up your {self.detail} tokens a second for now",
            "organization_limit": f"your organization has as many answers in progress as it may, {self.detail}",
            "organization_tokens": f"your organization has used up its {self.detail} tokens a second for now",
            "too_large": f"it needs {ask.need} tokens and the largest replica holds {self.detail}",
            "pressure": "the model has more to do than it can finish",
        }
        return Overloaded(self.retry_s or 0.0, reasons[self.code], code=self.code, alternative=ask.smaller)


@dataclass(frozen=True, slots=True)
class NoneReady:
    """No replica of the model is known."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing is known of the ticket."""


@dataclass(frozen=True, slots=True)
class Beat:
    """`known`: the owner's tickets are still counted. `stale`: models whose replicas must be told again."""

    epoch: str
    known: bool
    reaped: int
    stale: tuple[str, ...]


class Stranger(redis.RedisError):
    """Valkey does not know this owner: it was emptied, or gave the owner up. Nothing was done."""


@lru_cache(maxsize=8)
def _library() -> str:
    return "\n".join((LUA / name).read_text() for name in LIBRARY)


def build(policy: Policy) -> dict[str, Script]:
    """The scripts of a policy, by verb."""
    head = policy.lua() + _library()
    return {verb: Script(head + (LUA / f"{verb}.lua").read_text()) for verb in VERBS}


def digest(replicas: Sequence[ReplicaInfo]) -> str:
    """Changes with what the scripts are told of the replicas."""
    facts = sorted(_facts(replica) for replica in replicas)
    return Script(repr(facts)).digest


def _facts(replica: ReplicaInfo) -> tuple[str, int, int, int]:
    return replica.id, replica.slots, replica.kv_tokens or UNBOUNDED, replica.context_length or UNBOUNDED


class Verbs:
    """One owner's side. Every method raises redis.RedisError when Valkey is away; `now` is in milliseconds."""

    def __init__(self, pipe: Pipe, owner: str, policy: Policy) -> None:
        self.pipe, self.owner = pipe, owner
        self.scripts = build(policy)
        self.epoch = ""

    async def beat(self, now: float, digests: Sequence[tuple[str, str]]) -> Beat:
        pairs = [part for pair in digests for part in pair]
        reply = await self._run("beat", now, self.owner, self.epoch, secrets.token_hex(8), *pairs)
        epoch, known, reaped, *stale = reply
        self.epoch = epoch.decode()
        return Beat(self.epoch, bool(known), reaped, tuple(model.decode() for model in stale))

    async def set_replicas(self, now: float, model: str, replicas: Sequence[ReplicaInfo]) -> None:
        facts = [fact for replica in replicas for fact in _facts(replica)]
        await self._run("replicas", now, model, digest(replicas), *facts)

    async def ask(
        self, now: float, ask: Ask, *, asked: float | None = None, mark: int = 0, reminded: bool = False
    ) -> Granted | WaitState | Refused | NoneReady:
        """`reminded`: it waited before, since `asked`, and is not refused. `mark` comes back in the feed with the news
        of the grant. Raises Stranger."""
        again = "reminded" if reminded else "accepted" if ask.accepted else ""
        arguments = asking(ask, asked=now if asked is None else asked, mark=mark, again=again)
        return answered(await self._run("ask", now, self.epoch, self.owner, *arguments))

    async def hold(self, now: float, ask: Ask, *, asked: float, granted: float, replica: str) -> None:
        """Count a place that was granted before, unless another owner has its ticket by now. Raises Stranger."""
        reply = await self._run("hold", now, self.epoch, self.owner, *_who(ask), asked, granted, replica)
        if reply == b"epoch":
            raise Stranger

    async def release(self, now: float, ticket: str, used: int | None = None, *, whole: bool = True) -> bool:
        """Whether there was anything to release. `used`: tokens really taken. `whole`: the answer came to its end, so
        that the time it took says something. Raises Stranger."""
        tokens = "" if used is None else used
        reply = await self._run("release", now, self.epoch, self.owner, ticket, tokens, int(whole))
        if reply == b"epoch":
            raise Stranger
        return bool(reply)

    async def where(self, now: float, tickets: Sequence[str]) -> list[Granted | WaitState | Gone]:
        return [place_in(reply) for reply in await self._run("where", now, *tickets)] if tickets else []

    async def capacity(self, model: str) -> Standing:
        slots, running, rate, level, *classes = await self._run("capacity", model)
        waiting = []
        for name, tickets, tokens in zip(classes[::3], classes[1::3], classes[2::3], strict=True):
            lane, tier = name.decode().split(":")
            waiting.append(Waiting(Lane(lane), Tier(tier), tickets, tokens))
        return Standing(slots, running, _seconds(rate), level, tuple(waiting))

    async def _run(self, verb: str, *arguments: str | int | float) -> Any:
        return await self.pipe.run(self.scripts[verb], *arguments)


def _who(ask: Ask) -> tuple[str | int, ...]:
    organization = ask.organization if ask.budgeted else ""
    return ask.ticket, ask.model, ask.lane.value, ask.tier.value, ask.user, organization, ask.need


def asking(ask: Ask, *, asked: float | str, mark: int, again: str) -> tuple[str | int | float, ...]:
    """The arguments of an ask after its owner."""
    avoid = "\n".join(ask.avoid[:MOST_AVOIDED])
    prefixes = "\n".join(ask.prefixes[:MOST_PREFIXES])
    return (*_who(ask), ask.prefer, avoid, asked, mark, int(bool(ask.smaller)), again, prefixes)


def answered(reply: list[Any]) -> Granted | WaitState | Refused | NoneReady:
    """The reply to an ask. Raises Stranger."""
    match reply:
        case [b"granted", replica]:
            return Granted(replica.decode())
        case [b"queued", position, wait]:
            return WaitState(position, _seconds(wait))
        case [b"refused", code, retry, detail]:
            return Refused(code.decode(), _seconds(retry), _text(detail))
        case [b"none"]:
            return NoneReady()
    raise Stranger


def place_in(reply: list[Any]) -> Granted | WaitState | Gone:
    match reply:
        case [b"granted", replica]:
            return Granted(replica.decode())
        case [b"queued", position, wait]:
            return WaitState(position, _seconds(wait))
    return Gone()


def _seconds(text: bytes) -> float | None:
    return float(text) if text else None


def _text(detail: bytes | int) -> str:
    return detail.decode() if isinstance(detail, bytes) else str(detail)


async def read_standings(url: str, models: Sequence[str], policy: Policy) -> dict[str, Standing]:
    """How models stand, for whoever only looks. Raises redis.RedisError when Valkey is away."""
    pipe = Pipe(url)
    try:
        verbs = Verbs(pipe, "", policy)
        return {model: await verbs.capacity(model) for model in models}
    finally:
        await pipe.close()
