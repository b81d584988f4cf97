"""The numbers by which admission decides, and how they reach the scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from inference.admission.types import Lane, Tier


@dataclass(frozen=True, slots=True)
class Budget:
    """Of one user or one organization. `concurrency`: tickets that wait or hold, the batch lane left out.
    `tokens_per_s`: on average, after a burst of `Policy.burst_s` seconds' worth. 0 is no limit."""

    concurrency: int = 0
    tokens_per_s: float = 0.0


def _frozen(**values: float) -> Mapping[str, float]:
    return MappingProxyType(values)


_PLAIN = (
    "accepted_part",
    "affinity_slack",
    "long_share",
    "max_passes",
    "most_grants",
    "most_reaped",
    "shortened",
    "unmeasured_hold_s",
)
_USERS = MappingProxyType({Tier.FREE: Budget(16), Tier.PLUS: Budget(32), Tier.ENTERPRISE: Budget(64)})
_ORGANIZATIONS = MappingProxyType(dict.fromkeys(Tier, Budget()))


@dataclass(frozen=True, slots=True)
class Policy:
    """All processes of one installation must have the same.

    A class is a lane and a tier; its weight, the product of both, is its part of the tokens when all classes wait.
    `max_waiting`: tickets of one class of one model. `max_wait_s`: by lane, the longest wait; since forecasts err,
    who would by the forecast wait longer than `accepted_part` of it is refused. `long_share`: what the long lane
    may hold of a replica's slots and KV tokens. `max_passes`: how many may pass a ticket that does not fit before
    room is kept for it. `affinity_slack`: how much busier (1 is a full replica) the preferred replica may be.
    `ladder`: from which strain, the seconds of waiting work as a share of the longest wait of the interactive lane,
    batch pauses, only the `shortened` part of a wait is accepted, `first_refused` is offered a smaller model, and
    all are refused. Shortening by strain ends with the strain: a class whose line is long is not refused any longer
    than the overload lasts. A paused batch ticket is served again after `pause_most_s`. `reservation_s`: the
    longest that a place is held. `gate_s`: how long one is kept for a run that no runner has taken up. `window_s`:
    over which rates are measured. `settle_s`: how long owners may take to tell what they hold after Valkey was
    emptied. `prefix_s`: how long it is remembered where a prompt was placed, for those that begin like it.
    """

    lanes: Mapping[str, float] = field(default_factory=lambda: _frozen(interactive=8, long=3, batch=1))
    tiers: Mapping[str, float] = field(default_factory=lambda: _frozen(free=1, plus=2, enterprise=4))
    max_waiting: int = 256
    max_wait_s: Mapping[str, float] = field(default_factory=lambda: _frozen(interactive=120, long=300, batch=3_600))
    accepted_part: float = 0.75
    users: Mapping[Tier, Budget] = field(default_factory=lambda: _USERS)
    organizations: Mapping[Tier, Budget] = field(default_factory=lambda: _ORGANIZATIONS)
    burst_s: float = 60.0
    long_share: float = 0.5
    max_passes: int = 16
    affinity_slack: float = 0.5
    ladder: tuple[float, float, float, float] = (0.1, 0.25, 0.5, 1.0)
    shortened: float = 0.15
    first_refused: Tier = Tier.FREE
    pause_most_s: float = 300.0
    reservation_s: float = 3_600.0
    gate_s: float = 10.0
    window_s: float = 30.0
    heartbeat_s: float = 2.0
    owner_ttl_s: float = 10.0
    settle_s: float = 3.0
    announce_s: float = 1.0
    prefix_s: float = 600.0
    unmeasured_hold_s: float = 10.0
    most_grants: int = 64
    most_reaped: int = 200

    def weight(self, lane: Lane, tier: Tier) -> float:
        return self.lanes[lane] * self.tiers[tier]

    def lua(self) -> str:
        """The table `P` of the scripts. It is part of their text: nothing is parsed when they run."""
        table: dict[str, object] = {
            "weights": {f"{lane}:{tier}": self.weight(lane, tier) for lane in Lane for tier in Tier},
            "max_waiting": self.max_waiting,
            "max_wait_ms": {lane: seconds * 1000 for lane, seconds in self.max_wait_s.items()},
            "users": {tier: _budget(budget) for tier, budget in self.users.items()},
            "organizations": {tier: _budget(budget) for tier, budget in self.organizations.items()},
            "ladder": list(self.ladder),
            "first_refused": str(self.first_refused),
        }
        for name in _PLAIN:
            table[name] = getattr(self, name)
        for name in ("burst", "gate", "pause_most", "reservation", "window", "owner_ttl", "prefix", "settle"):
            table[f"{name}_ms"] = getattr(self, f"{name}_s") * 1000
        return f"local P = {_lua(table)}\n"


DEFAULT = Policy()


def _budget(budget: Budget) -> dict[str, float]:
    return {"concurrency": budget.concurrency, "rate": budget.tokens_per_s}


def _lua(value: object) -> str:
    """A Lua literal. ValueError for a text that would need escapes, so that no name can become code."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"[{_lua(str(key))}]={_lua(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ",".join(map(_lua, value)) + "}"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if not text.isprintable() or "'" in text or "\\" in text:
        raise ValueError(f"not a name: {text!r}")
    return f"'{text}'"
