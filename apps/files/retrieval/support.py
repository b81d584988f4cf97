"""Whether the passages that a sentence cites hold what it says: its quotes, dates, numbers and names. Pure.

Looked up, not understood: what is not found was not in the source, what is found may still be put wrongly. Sums,
counts and names that the answer made itself are not in the source either and are told as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from apps.files.retrieval import facts
from apps.files.retrieval.facts import Date, Name, Number, Value

MAX_LISTED = 5
"""Pieces that are named for one citation."""
_ROUGHLY = re.compile(
    r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|over|under|circa|ca\.?|more than|less than"
    r"|at least|up to|~|≈|>|<)\s*[$€£¥]?\s*$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\]\([^)]*\)|https?://\S+")
_EMPHASIS = re.compile(r"[*#|]+|^\s*>+|(?<!\w)_+|_+(?!\w)")
_ITEM = re.compile(r"^\s*(?:\d{1,3}[.)]\s|[-+\u2022]\s)")
_GERMAN = re.compile(r"\b(?:der|die|das|den|dem|und|nicht|ist|wird|wurde|mit|von|im|ein|eine|einen)\b")
_OPENERS = frozenset(
    """additionally moreover furthermore however therefore thus hence overall finally similarly specifically meanwhile
    instead although despite since unlike like yes note using given today later earlier several many another every
    within without among across per via regarding concerning notably importantly consequently first second third
    lastly next besides alongside according based""".split()  # noqa: SIM905
)
_ORDINARY = re.compile(r"\w+(?:ing|ly|ed)$")
"""Of a word that begins a sentence before a name, "Using Python"; few names end so."""
_NEAR = 3
"""Words that may stand between those of a name: initials, "of the"."""


class Evidence:
    """What the passages that a sentence cites say, read once."""

    def __init__(self, texts: Iterable[str]) -> None:
        text = facts.normal("\n".join(texts))
        self.words = facts.words_of(text)
        self._line = f" {' '.join(self.words)} "
        self._places: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            self._places.setdefault(word, []).append(place)
        self.dates: set[Date] = {date for said in facts.dates(text) for date in said.dates}
        found = list(facts.numbers(text))
        self.numbers: set[Value] = {value for number in found for value in number.values}
        self.numbers |= {
            float(part) for number in found for part in re.findall(r"\d+", number.text) if " " in number.text
        }
        self.numbers |= {float(word) for word in self.words if word.isascii() and word.isdigit()}
        self.numbers |= {*facts.ordinals(self.words), *(float(part) for date in self.dates for part in date if part)}
        self.scales = facts.scales(self.words)
        capitals = re.findall(r"\b([^\W\d_])[\w'\u2019]*", text)
        self.initials = "".join(letter for letter in capitals if letter.isupper())
        # "in" is not short for "Ingrid Novotny".
        self.abbreviations = {
            word.casefold() for word in re.findall(r"[^\W\d_]{2,}", text) if sum(map(str.isupper, word)) >= 2
        }

    def has_phrase(self, words: Sequence[str]) -> bool:
        return f" {' '.join(words)} " in self._line

    def has_date(self, date: Date) -> bool:
        """The month with all that is said of it; a year that stands elsewhere counts where the date has none."""
        year, month, day = date
        return any(
            month == known_month
            and (day is None or day == known_day)
            and (year is None or year == known_year or (known_year is None and float(year) in self.numbers))
            for known_year, known_month, known_day in self.dates
        )

    def counts(self, things: Sequence[str]) -> set[Value]:
        """The numbers that stand up to two words before one of these words."""
        lines = (self.words[max(0, place - 3) : place] for thing in things for place in self._places.get(thing, ()))
        return {value for line in lines for number in facts.numbers(" ".join(line)) for value in number.values}

    def has_number(self, number: Number, *, roughly: bool) -> bool:
        if number.values & self.numbers or (number.scale in self.scales and number.bare & self.numbers):
            return True
        return roughly and any(_rounds_to(known, value) for known in self.numbers for value in number.values)

    def has_name(self, words: Sequence[str]) -> bool:
        """The words near each other, in any order, or the name and its abbreviation for one another."""
        initials = "".join(word[0] for word in words)
        if len(words) > 1 and initials in self.abbreviations:
            return True
        if len(words) == 1 and 3 <= len(words[0]) <= 6 and words[0].upper() in self.initials:
            return True
        places = [self._near(word) for word in words]
        if len(words) == 1 or not all(places):
            return all(places)
        reach = len(words) + _NEAR
        return any(all(any(abs(place - start) < reach for place in other) for other in places) for start in places[0])

    def _near(self, word: str) -> list[int]:
        if found := self._places.get(word):
            return found
        # "German" for "Germany", "sensors" for "sensor".
        return [
            place
            for known, places in self._places.items()
            if min(len(known), len(word)) >= 4
            and abs(len(known) - len(word)) <= 2
            and (known.startswith(word) or word.startswith(known))
            for place in places
        ]


def _rounds_to(known: Value, said: Value) -> bool:
    """Whether `said` is `known` with fewer digits."""
    if isinstance(known, str) or isinstance(said, str) or said == 0:
        return False
    digits = len(str(int(abs(said))).rstrip("0")) if said == int(said) else len(repr(said).replace(".", "").strip("0"))
    return float(f"{known:.{max(digits, 1)}g}") == said or abs(known - said) <= 0.05 * abs(said)


def capitalised(texts: Iterable[str], common: frozenset[str]) -> frozenset[str]:
    """Words that these texts write with a capital though they begin no sentence: names, wherever they stand."""
    return frozenset(
        word
        for text in texts
        for line in re.split(r"(?<=[.!?])\s+|\n", facts.normal(text))
        for name in facts.names(line, common)
        for word in name.words[name.initial :]
    )


def unsupported(sentence: str, evidence: Evidence, *, known: frozenset[str], common: frozenset[str]) -> list[str]:
    """The pieces of a sentence that `evidence` does not hold, as they are written there, in no order.

    `known` are words that are names for certain: one that begins a sentence cannot be told from another word.
    """
    text = _EMPHASIS.sub(" ", _ADDRESS.sub(" ", _ITEM.sub("", facts.normal(sentence))))
    missing: list[str] = []
    quoted = list(facts.quotes(text))
    missing += [found.text for found, parts in quoted if not all(evidence.has_phrase(part) for part in parts)]
    text = facts.blanked(text, [found for found, _ in quoted])
    said = list(facts.dates(text))
    missing += [date.text for date in said if not any(evidence.has_date(reading) for reading in date.dates)]
    text = facts.blanked(text, [*said])
    missing += _missing_numbers(text, evidence)
    missing += [name.text for name in _names(text, known, common) if not evidence.has_name(name.words)]
    return missing


def _missing_numbers(text: str, evidence: Evidence) -> Iterator[str]:
    for number in facts.numbers(text):
        if evidence.has_number(number, roughly=bool(_ROUGHLY.search(text, max(0, number.start - 24), number.start))):
            continue
        if number.counts and not evidence.counts(facts.words_of(text[number.end :])[:2]):
            continue
        yield number.text


def _names(text: str, known: frozenset[str], common: frozenset[str]) -> Iterator[Name]:
    nouns_too = len(_GERMAN.findall(text)) >= 2
    for name in facts.names(text, common | _OPENERS):
        unsure = name.initial and name.words[0] not in known
        meant = name.without_first() if unsure and (len(name.words) == 1 or _ORDINARY.match(name.words[0])) else name
        if meant.words and not (nouns_too and len(meant.words) == 1):
            yield meant
