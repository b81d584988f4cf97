"""Passages that state made-up facts, sentences that state them again in other words, and ones that get them wrong.

A claim is about one value: a quote, number, date or name. The wrong ones take the value of another passage, or one
that is hard to tell from the right one. Claims without marks keep close to the words of their passage, by which they
are matched to it, and are wrong by a value that no passage has. Everything follows from a seed.
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
    """`passages` as given to a model, `answer` a sentence that cites `number` or is from it, true to it or not."""

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


def _matched(kind: ClaimKind, chance: random.Random, right: _Facts, wrong: _Facts) -> str:
    """A sentence much as the passage of `right` has it, with one value of `wrong`."""
    first, family = right.person.split()
    other_first, other_family = wrong.person.split()
    day, month, year = f"{right.day}", _MONTHS[right.month], f"{right.year}"
    place, person, quote, count, money = right.place, right.person, right.quote, right.count, right.money
    match kind:
        case "quote":
            words = quote.split()
            words[chance.randrange(2, len(words))] = wrong.quote.split()[-1]
            quote = quote if right is wrong else chance.choice((" ".join(words), wrong.quote))
        case "number":
            count, money = wrong.count, wrong.money
        case "date":
            month = _MONTHS[wrong.month]
            day, year = chance.choice(((day, year), (f"{wrong.day}", year), (f"{wrong.day}", f"{wrong.year}")))
        case "name":
            person = chance.choice((wrong.person, f"{first} {other_family}", f"{other_first} {family}"))
            place = chance.choice((place, wrong.place))
    met = f"the council of {place} met to hear {person}."
    sentences = {
        "quote": (f'At the meeting {person} said: "{quote}."', f"\u201c{quote}\u201d, said {person} at the meeting."),
        "number": (
            f"The crew had taken {count:,} samples from the river.",
            f"Repairs will cost ${money} million, which the town is to pay.",
        ),
        "date": (f"On {day} {month} {year} {met}", f"On {month} {day}, {year}, {met}"),
        "name": (f"On {day} {month} {year} {met}", f"In {year}, {met}"),
    }
    return chance.choice(sentences[kind])


def matched_claims(kind: ClaimKind, count: int, *, true: bool, seed: int) -> list[Claim]:
    """Claims of answers that cite nothing. The wrong value of one is in none of its passages."""
    chance = random.Random(f"matched {kind} {true} {seed}")
    made = []
    for _ in range(count):
        right = _facts(chance)
        passages = [facts.passage(chance) for facts in (right, _distinct(chance, right))]
        number = chance.randint(1, 2)
        if number == 2:
            passages.reverse()
        wrong = right if true else _absent(chance, right, passages)
        made.append(Claim(kind, tuple(passages), number, _matched(kind, chance, right, wrong), true))
    return made


def _absent(chance: random.Random, right: _Facts, passages: list[str]) -> _Facts:
    """Facts none of whose names, months or quotes these passages have."""
    text = " ".join(passages)
    while True:
        wrong = _distinct(chance, right)
        values = (*wrong.person.split(), wrong.place, _MONTHS[wrong.month], wrong.quote[1:], f"{wrong.count:,}")
        if not any(value in text for value in (*values, f"${wrong.money} ")):
            return wrong
