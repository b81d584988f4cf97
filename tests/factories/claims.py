"""Passages that state made-up facts, sentences that state them again in other words, and ones that get them wrong.

A claim is about one value: a quote, number, date or name. The wrong ones take the value of another passage, or one
that is hard to tell from the right one. Everything follows from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.factories import documents

ClaimKind = Literal["quote", "number", "date", "name"]
KINDS: tuple[ClaimKind, ...] = ("quote", "number", "date", "name")

_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_FIRST = "Anna Jonas Mirela Tomasz Aisha Diego Ingrid Kofi Leila Pavel Yuki Noor Elena Marcus Sofia Henrik".split()  # noqa: SIM905
_FAMILY = (
    "Keller Weber Ionescu Nowak Rahman Alvarez Lindqvist Mensah Haddad Novotny Tanaka Okafor Petrov Boyd Rossi".split()  # noqa: SIM905
)
_PLACES = "Cordenfal Nelvora Quorast Tamzel Ostmar Brinwick Halderby Serrano Vikmund Lusaka Porto Bergen".split()  # noqa: SIM905
_QUOTED = (
    "we were not ready for this flood", "the gauge had been wrong for years", "no one asked the crew before",
    "every bridge on the river must be closed", "the budget will not last until the summer",
    "our readings are better than theirs", "the old dam was never built for this", "people here remember the storm",
    "it is cheaper to move the road", "the samples were lost on the way", "winter came a month too early",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """`passages` as given to a model, `answer` a sentence that cites `number`, true to it or not."""

    kind: ClaimKind
    passages: tuple[str, ...]
    number: int
    answer: str
    true: bool


@dataclass(frozen=True, slots=True)
class _Facts:
    """What one passage states."""

    place: str
    person: str
    quote: str
    day: int
    month: int
    year: int
    count: int
    share: float
    money: float

    def passage(self, chance: random.Random) -> str:
        date = chance.choice(
            (f"{self.day} {_MONTHS[self.month]} {self.year}", f"{_MONTHS[self.month]} {self.day}, {self.year}")
        )
        sentences = [
            f"On {date} the council of {self.place} met to hear {self.person}.",
            f'"{self.quote[0].upper()}{self.quote[1:]}," said {self.person} at the meeting.',
            f"The crew had taken {self.count:,} samples from the river, {self.share} percent of them at night.",
            f"Repairs will cost ${self.money} million, to be paid by the town.",
        ]
        sentences += documents.sentences(6, seed=chance.randrange(1 << 30))
        chance.shuffle(sentences)
        return " ".join(sentences)


def _facts(chance: random.Random) -> _Facts:
    return _Facts(
        place=chance.choice(_PLACES),
        person=f"{chance.choice(_FIRST)} {chance.choice(_FAMILY)}",
        quote=chance.choice(_QUOTED),
        day=chance.randint(1, 28),
        month=chance.randrange(12),
        year=chance.randint(1951, 2024),
        count=chance.randint(1_100, 98_000),
        share=round(chance.uniform(11, 89), 1),
        money=round(chance.uniform(1.1, 9.9), 1),
    )


def _quote(chance: random.Random, right: _Facts, other: _Facts, true: bool) -> str:
    said = right.quote
    if not true:
        words = said.split()
        words[chance.randrange(2, len(words))] = chance.choice(("harbour", "never", "cattle", "north", "lawyers"))
        said = chance.choice((" ".join(words), other.quote))
    template = chance.choice(
        (
            'As one of them put it, "{}" [N].',
            "The meeting was told that \u201c{}\u201d [N].",
            'They heard this: "{}." [N]',
        )
    )
    return template.format(said)


def _number(chance: random.Random, right: _Facts, other: _Facts, true: bool) -> str:
    count, share, money = right.count, right.share, right.money
    if not true:
        near = int(_other_digit(chance, str(count)))
        count, share = chance.choice((near, other.count)), chance.choice((round(share + 1, 1), other.share))
        money = chance.choice((round(money + 0.1, 1), other.money))
    written = chance.choice((f"{count:,}", str(count), f"{count:,}".replace(",", "\u202f")))
    return chance.choice(
        (
            f"In total {written} samples were taken [N].",
            f"The share of samples from the night was {share} % [N].",
            f"They came to {share}% of all samples. [N]",
            f"The town pays {money} million dollars for repairs [N].",
            f"Repairs cost ${round(money * 1e6):,} [N].",
        )
    )


def _date(chance: random.Random, right: _Facts, other: _Facts, true: bool) -> str:
    day, month, year = right.day, right.month, right.year
    if not true:
        wrong = chance.randrange(4)
        day = day % 28 + 1 if wrong == 0 else day
        month = (month + chance.randint(1, 11)) % 12 if wrong == 1 else month
        year = year + chance.choice((-1, 1, 10)) if wrong == 2 else year
        if wrong == 3:
            day, month, year = other.day, other.month, other.year
    name = _MONTHS[month]
    written = chance.choice(
        (f"{day} {name} {year}", f"{name} {day}, {year}", f"{year}-{month + 1:02}-{day:02}", f"{name} {day}th, {year}")
    )
    return chance.choice((f"The council met on {written} [N].", f"On {written}, the council had a meeting. [N]"))


def _name(chance: random.Random, right: _Facts, other: _Facts, true: bool) -> str:
    person, place = right.person, right.place
    if not true:
        first, family = person.split()
        person = chance.choice(
            (other.person, f"{first} {other.person.split()[1]}", f"{other.person.split()[0]} {family}")
        )
        place = other.place
    return chance.choice(
        (
            f"The council heard {person} at its meeting [N].",
            f"{person} spoke to the council [N].",
            f"The meeting took place in {place} [N].",
            f"It was the council of {place} that met, which {person} attended [N].",
            f"Dr. {person} spoke to the council [N].",
        )
    )


def _other_digit(chance: random.Random, digits: str) -> str:
    place = chance.randrange(1, len(digits))
    return digits[:place] + str((int(digits[place]) + chance.randint(1, 9)) % 10) + digits[place + 1 :]


_MAKERS: dict[ClaimKind, Callable[[random.Random, _Facts, _Facts, bool], str]] = {
    "quote": _quote,
    "number": _number,
    "date": _date,
    "name": _name,
}


def _distinct(chance: random.Random, right: _Facts) -> _Facts:
    """Facts that share no value with `right`."""
    while True:
        other = _facts(chance)
        same = (
            other.place == right.place, other.quote == right.quote, other.year == right.year,
            other.month == right.month, other.day == right.day, other.count == right.count,
            other.share == right.share, other.money == right.money,
            bool(set(other.person.split()) & set(right.person.split())),
        )  # fmt: skip
        if not any(same):
            return other


def claims(kind: ClaimKind, count: int, *, true: bool, seed: int) -> list[Claim]:
    chance = random.Random(f"{kind} {true} {seed}")
    made = []
    for _ in range(count):
        right = _facts(chance)
        other = _distinct(chance, right)
        passages = [facts.passage(chance) for facts in (right, other)]
        number = chance.randint(1, 2)
        if number == 2:
            passages.reverse()
        answer = _MAKERS[kind](chance, right, other, true).replace("[N]", f"[{number}]")
        made.append(Claim(kind, tuple(passages), number, answer, true))
    return made
