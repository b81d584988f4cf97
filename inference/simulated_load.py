"""Who asks what, how often, and of which replicas: the made-up part of `simulate`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from inference.admission.types import Lane, Tier
from inference.protocol import ReplicaInfo, ReplicaState
from inference.registry import ModelCard, Record

_THINGS = ("river", "bridge", "engine", "planet", "market", "treaty", "cell", "poem")


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a replica is, in seconds a token of the prompt and of the answer, and how long both are: drawn evenly
    from a range. `reserved`: the most that an answer may have, for which room is kept."""

    prompt_token_s: float = 0.0005
    token_s: float = 0.02
    prompt: tuple[int, int] = (100, 600)
    answer: tuple[int, int] = (50, 400)
    reserved: int = 400

    @property
    def mean_s(self) -> float:
        return sum(self.prompt) / 2 * self.prompt_token_s + sum(self.answer) / 2 * self.token_s


@dataclass(frozen=True, slots=True)
class Source:
    """A user that starts `per_s` runs a second, at random (a Poisson process), from `begin_s` to `end_s`."""

    user: str
    tier: Tier
    per_s: float
    begin_s: float
    end_s: float
    lane: Lane = Lane.INTERACTIVE


def replicas(count: int, slots: int, levels: int = 1) -> list[Record]:
    """Alike, with room for a thousand tokens a slot; dealt out to one model a level."""
    return [_replica(n, slots, 1 + n % levels) for n in range(count)]


def _replica(number: int, slots: int, level: int) -> Record:
    model = f"level-{level}"
    info = ReplicaInfo(
        f"r{number:05}",
        model,
        "http://simulated",
        "fake",
        ReplicaState.READY,
        slots=slots,
        kv_tokens=slots * 1_000,
        context_length=8_000,
    )
    return Record(info, ModelCard(model, model, level=level))


def questions(seed: int) -> Iterator[str]:
    """Without end: of a few words, of one plain sentence, or of several people and what they did."""
    dice = random.Random(f"questions {seed}")  # noqa: S311 - a load, not a secret
    while True:
        yield _question(dice)


def _question(dice: random.Random) -> str:
    thing, other = dice.sample(_THINGS, 2)
    match dice.randrange(3):
        case 0:
            return f"Tell me of the {thing}."
        case 1:
            return f"What is the name of the {thing} that is in the north of the {other}, and who saw it first?"
    return (
        f"A person had given the {thing} to his brother, who did not want it, and she took it from him when they were"
        f" in the {other}. Which of the following is then true, and which is not?"
    )


def people(per_s: float, begin_s: float, end_s: float, *, a_tier: int = 20) -> list[Source]:
    """So many users of each tier, all alike, who together start `per_s` runs a second."""
    each = per_s / (a_tier * len(Tier))
    return [Source(f"{tier}-{n}", tier, each, begin_s, end_s) for tier in Tier for n in range(a_tier)]
