"""What can be looked up of a sentence: its quotes, dates, numbers and names, whatever way they are written. Pure.

Responsible for reading them, the same way in an answer and in a passage. Whether one supports the other is
`support`'s to say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

Value = float | str
"""A number, or the digits of what is none, as a version is."""
Date = tuple[int | None, int, int | None]
"""Year, month and day, as far as they are said."""

MIN_QUOTED_WORDS = 2
_QUOTED = re.compile(
    r"[\"\u201c\u201d\u201e]([^\"\u201c\u201d\u201e\n]+)[\"\u201c\u201d]|\u00ab([^\u00bb\n]+)\u00bb|「([^」\n]+)」"
    r"|(?<!\w)['\u2018]([^'\u2018\u2019\n]*(?:\w['\u2019]\w[^'\u2018\u2019\n]*)*)['\u2019](?!\w)"
)
_LEFT_OUT = re.compile(r"\[[^\]]*\]|\u2026|\.\.\.")
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b")

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero", "february feb februar février febrero", "march mar märz mars marzo",
            "april apr avril abril", "may mai mayo", "june jun juni juin junio", "july jul juli juillet julio",
            "august aug août agosto", "september sep sept septembre septiembre", "october oct oktober octobre octubre",
            "november nov novembre noviembre", "december dec dezember décembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th|\.)?(?![\d.,]*\d)"
_DATE = re.compile(
    rf"(?<![\w.]){_DAY}\s+(?:of\s+|de\s+)?{_MONTH}(?:,?\s+(?:de\s+)?(\d{{4}}))?(?!\d)"
    rf"|\b{_MONTH}\s+{_DAY}(?:,?\s+(\d{{4}}))?(?!\d)"
    rf"|\b{_MONTH},?\s+(?:of\s+|de\s+)?(\d{{4}})(?!\d)"
    r"|(?<![\d.])(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"
    r"|(?<![\d.])(\d{1,2})[./](\d{1,2})[./](\d{4})(?!\d)",
    re.IGNORECASE,
)

_SCALES = {
    word: factor
    for factor, words in (
        (1e3, "thousand thousands tausend mille mil k"),
        (1e6, "million millions millionen millones mio mn m"),
        (1e9, "billion billions milliarden milliards bn b"),
        (1e12, "trillion trillions tn"),
    )
    for word in words.split()
}
_LETTERS = frozenset("kmb")  # "5m" may be metres
_NUMBER = re.compile(
    r"(?<![^\W\d_])(?<![\d][.,])"
    r"(\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*)"
    r"(?:[\s\u00a0-]?([^\W\d_]+))?"
)
_UNITS = {
    word: number
    for number, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen""".split()  # noqa: SIM905
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)  # noqa: SIM905
}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(),  # noqa: SIM905
        start=1,
    )
}
_SMALL = "|".join((*_UNITS, *_TENS, "hundred"))
_SPELT = re.compile(
    rf"\b(?:{_SMALL})(?:[\s-]+(?:and\s+)?(?:{_SMALL}|thousand|million|billion|trillion))*\b", re.IGNORECASE
)

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_BETWEEN = re.compile(r"\.?\s+(?:(?:of|the|and|de|van|von|der|du|la|&)\s+){0,2}")
_TITLES = frozenset("mr mrs ms dr prof professor sir president chancellor minister senator judge captain".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of text that states something, where it stands, and what it may mean."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Number(Found):
    """`values` are the ways to read it; `bare` those without the scale word behind it (`scale`, 1 without one)."""

    values: frozenset[Value]
    bare: frozenset[Value]
    scale: float

    @property
    def counts(self) -> bool:
        """A small number in words may be a count that a writer made ("two reasons")."""
        return not self.text[0].isdigit() and all(isinstance(value, float) and value <= 10 for value in self.values)


@dataclass(frozen=True, slots=True)
class DateSaid(Found):
    dates: tuple[Date, ...]


@dataclass(frozen=True, slots=True)
class Name(Found):
    """Capitalised words that follow each other. `initial`: the first of them begins a sentence."""

    words: tuple[str, ...]
    initial: bool

    def without_first(self) -> Name:
        """The name without its first word."""
        rest = self.text.split(None, 1)
        text = rest[1] if len(rest) > 1 else ""
        return Name(text, self.end - len(text), self.end, self.words[len(words_of(rest[0])) :], initial=False)


def normal(text: str) -> str:
    """One form for characters that look alike: full-width digits, ligatures, composed accents."""
    return unicodedata.normalize("NFKC", text)


def words_of(text: str) -> list[str]:
    """Words in lower case, without punctuation and without the possessive's ending."""
    return [word.casefold() for word in _WORD.findall(_POSSESSIVE.sub("", text))]


def blanked(text: str, found: list[Found]) -> str:
    """`text` with these pieces as spaces, offsets kept."""
    for piece in found:
        text = text[: piece.start] + " " * (piece.end - piece.start) + text[piece.end :]
    return text


def quotes(text: str) -> Iterator[tuple[Found, tuple[tuple[str, ...], ...]]]:
    """Quotes of at least two words, with the words of each part where something was left out or put in brackets."""
    for match in _QUOTED.finditer(text):
        said = next(group for group in match.groups() if group is not None)
        parts = tuple(tuple(words_of(part)) for part in _LEFT_OUT.split(said))
        if sum(len(part) for part in parts) >= MIN_QUOTED_WORDS or not said.isascii():
            yield Found(match.group(), match.start(), match.end()), tuple(part for part in parts if part)


def dates(text: str) -> Iterator[DateSaid]:
    for match in _DATE.finditer(text):
        readings = tuple(_readings(match.groups()))
        if readings and not re.match(r"(?:\d+\.?\s+)?(?:may|mar|dec)\b", match.group()):
            yield DateSaid(match.group().strip(" ,."), match.start(), match.end(), readings)


def _readings(groups: tuple[str | None, ...]) -> Iterator[Date]:
    day, month, year, month2, day2, year2, month3, year3, iso_year, iso_month, iso_day, one, two, year4 = groups
    if (name := month or month2 or month3) is not None:
        said_day, said_year = day or day2, year or year2 or year3
        yield _year(said_year), _MONTHS[name.casefold()], int(said_day) if said_day else None
    elif iso_year and iso_month and iso_day:
        yield int(iso_year), int(iso_month), int(iso_day)
    elif one and two and year4:
        yield from {(int(year4), int(one), int(two)), (int(year4), int(two), int(one))}


def _year(text: str | None) -> int | None:
    return int(text) if text else None


def numbers(text: str) -> Iterator[Number]:
    """Numbers in digits and in words, `one` alone excepted."""
    for match in _NUMBER.finditer(text):
        digits, word = match.group(1), (match.group(2) or "").casefold()
        scale = _SCALES.get(word, 1.0)
        end = match.end() if scale != 1 else match.end(1)
        bare = frozenset(_values(digits))
        scaled = frozenset(round(value * scale, 6) if isinstance(value, float) else value for value in bare)
        values = scaled | bare if word in _LETTERS else scaled
        yield Number(text[match.start() : end], match.start(), end, values, bare, scale)
    for match in _SPELT.finditer(text):
        said = match.group()
        if said.casefold() != "one":
            value = frozenset[Value]({_spelt(said)})
            yield Number(said, match.start(), match.end(), value, value, 1.0)


def _values(digits: str) -> Iterator[Value]:
    """Readings of a number whose points and commas may separate decimals or thousands."""
    plain = re.sub(r"[ \u00a0\u202f'\u2019]", "", digits)
    marks = re.findall(r"[.,]", plain)
    if len(set(marks)) == 2:
        whole, _, decimals = plain.rpartition(marks[-1])
        yield float(re.sub(r"[.,]", "", whole) + "." + decimals)
    elif len(marks) > 1:
        thousands = all(len(group) == 3 for group in re.split(r"[.,]", plain)[1:])
        yield float(re.sub(r"[.,]", "", plain)) if thousands else plain
    else:
        yield float(plain.replace(",", "."))
        if marks and len(plain) - plain.index(marks[0]) == 4:
            yield float(plain.replace(marks[0], ""))


def _spelt(text: str) -> float:
    total = part = 0.0
    for word in re.split(r"[\s-]+", text.casefold()):
        if word in _SCALES:
            total, part = total + part * _SCALES[word], 0
        elif word == "hundred":
            part = max(part, 1) * 100
        else:
            part += _UNITS.get(word, _TENS.get(word, 0))
    return total + part


def ordinals(words: list[str]) -> Iterator[float]:
    """Places said in words, for "3rd" where the passage has "third"."""
    yield from (float(_ORDINALS[word]) for word in words if word in _ORDINALS)


def scales(words: list[str]) -> frozenset[float]:
    """Scale words anywhere, as a table's "in millions" stands far from its numbers."""
    return frozenset(_SCALES[word] for word in words if word in _SCALES and len(word) > 1)


def names(text: str, common: frozenset[str]) -> Iterator[Name]:
    """Runs of words with capitals. Common words and titles ("Dr") are not part of them."""
    run: list[re.Match[str]] = []
    first = _TOKEN.search(text)
    for token in _TOKEN.finditer(text):
        named = _is_name(token.group(), common)
        if run and (not named or not _BETWEEN.fullmatch(text, run[-1].end(), token.start())):
            yield _name(text, run, first)
            run = []
        if named:
            run.append(token)
    if run:
        yield _name(text, run, first)


def _is_name(token: str, common: frozenset[str]) -> bool:
    plain = _POSSESSIVE.sub("", token).casefold()
    return len(token) > 1 and token != token.lower() and plain not in common and plain not in _TITLES


def _name(text: str, run: list[re.Match[str]], first: re.Match[str] | None) -> Name:
    start, end = run[0].start(), run[-1].end()
    words = tuple(word for token in run for word in words_of(token.group()))
    return Name(_POSSESSIVE.sub("", text[start:end]), start, end, words, first is not None and first.start() == start)
