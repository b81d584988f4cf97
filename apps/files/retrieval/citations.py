"""Citations of an answer, each held to the passages that were given. Pure.

A model's `[n]` counts only when passage n was given, and what its sentence states is looked up there (`support`): a
miss marks the citation. When it cites nothing (small models often do not), its sentences are attributed to passages
whose words they use, marked as such and looked up in the same way; what matches nothing stays without.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from apps.files.retrieval.context import where
from apps.files.retrieval.support import MAX_LISTED, Evidence, capitalised, unsupported
from apps.files.types import PassageHit

MIN_TERMS = 4
MIN_COVERAGE = 0.6
MIN_PAIRS = 2
"""A sentence is a passage's when this share of its content words, and so many pairs of neighbours, are there."""
MAX_TRIED = 4
"""Passages that have a sentence's words in which all that it states is looked up."""

_CODE = re.compile(r"(?:```.*?(?:```|\Z))|(?:~~~.*?(?:~~~|\Z))|(?:`[^`\n]*`)", re.DOTALL)
_MARK = re.compile(
    r"[\[【]\s*(?:sources?\s*)?(\d{1,3}(?:\s*(?:[,;&]|and|[-\u2013])\s*\d{1,3})*)\s*[\]】](?!\()", re.IGNORECASE
)
_RANGE = re.compile(r"(\d{1,3})(?:\s*[-\u2013]\s*(\d{1,3}))?")
_MARKED = re.compile(r"[ \t]*" + _MARK.pattern, re.IGNORECASE)
"""Marks that follow a full stop, or another mark, on the same line."""
_QUOTE = re.compile(r"[\"\u201c\u201e][^\"\u201c\u201d\u201e\n]+[\"\u201d\u201c]|\u00ab[^\u00bb\n]+\u00bb")
_END = re.compile(r"[.!?]+[\"'\u201d\u2019)\]*_]*(?=\s|$)|[。！？]+|\n")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|[A-Z]\.[A-Z]|Dr|Mrs?|Ms|Prof|Sr|Jr|St|No|vs|e\.g|i\.e|approx|ca|cf|Fig|Inc|Ltd|Co|Corp|al)$"
)
_ABBREVIATED = 8
"""Characters before a full stop in which an abbreviation stands."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_ENDINGS = re.compile(r"(?:ational|ization|fulness|ousness|iveness|ing|edly|ies|ied|ed|es|s|ly)$")
FUNCTION_WORDS = frozenset(
    """a about above after again all also an and any are as at be because been before being between both but by can
    could did do does doing down during each few for from further had has have having he her here hers him his how i if
    in into is it its just me more most my no nor not now of off on once only or other our out over own same she should
    so some such than that the their them then there these they this those through to too under until up very was we
    were what when where which while who whom why will with would you your""".split()  # noqa: SIM905
)
_COMMON = FUNCTION_WORDS | frozenset(
    """according source sources document documents file files page passage text says say states stated mentions
    mentioned describes described provided information answer question following based""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One `[...]` of an answer: where it stands, and the numbers it names in order."""

    start: int
    end: int
    numbers: tuple[int, ...]


def _outside_code(answer: str) -> str:
    """The answer with code blanked out, offsets kept: `a[1]` in code is no citation."""
    return _CODE.sub(lambda found: " " * len(found.group()), answer)


def marks(answer: str) -> Iterator[Mark]:
    for found in _MARK.finditer(_outside_code(answer)):
        numbers: list[int] = []
        for low, high in _RANGE.findall(found.group(1)):
            first, last = int(low), int(high or low)
            numbers += range(first, min(last, first + 50) + 1) if last >= first else (first, last)
        yield Mark(found.start(), found.end(), tuple(dict.fromkeys(numbers)))


def without_unknown(answer: str, given: int) -> str:
    """The answer with marks for passages beyond the `given` ones taken out, for readers that cannot check them."""
    parts: list[str] = []
    position = 0
    for mark in marks(answer):
        known = [number for number in mark.numbers if 1 <= number <= given]
        if len(known) == len(mark.numbers):
            continue
        before = answer[position : mark.start]
        parts.append(before if known else before.rstrip(" "))
        parts.append("".join(f"[{number}]" for number in known))
        position = mark.end
    return "".join(parts) + answer[position:]


def _citation(number: int, hit: PassageHit, *, attributed: bool, unsupported: Sequence[str]) -> dict[str, Any]:
    return {
        "n": number,
        "passage_id": str(hit.passage_id),
        "file_id": str(hit.file_id),
        "file_name": hit.file_name,
        "page": hit.page,
        "table": hit.table,
        **({"sql": hit.sql} if hit.sql else {}),
        **({"locator": hit.locator.as_json()} if hit.locator else {}),
        "heading": hit.heading,
        "text": hit.text,
        "boxes": [list(box) for box in hit.boxes],
        "source": hit.source,
        "attributed": attributed,
        "unsupported": list(unsupported),
    }


def _stem(word: str) -> str:
    stem = _ENDINGS.sub("", word) if len(word) > 4 else word
    return stem if len(stem) >= 3 else word


def _terms(text: str) -> list[str]:
    """Content words in order, without their endings; numbers as they are."""
    words = (found.group().lower() for found in _WORD.finditer(text))
    kept = (word for word in words if word[0].isdigit() or (word not in _COMMON and len(word) > 1))
    return [word if word[0].isdigit() else _stem(word) for word in kept]


def _pairs(terms: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(terms))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]


def _support(sentence: Sequence[str], passage: _Vocabulary) -> float:
    """Share of the sentence's words that the passage has, or 0 when it cannot be its source."""
    numbers = [term for term in sentence if term[0].isdigit()]
    if any(number not in passage.terms for number in numbers):
        return 0.0
    counted = Counter(sentence)
    coverage = sum(counted[term] for term in counted if term in passage.terms) / len(sentence)
    if coverage < MIN_COVERAGE or len(_pairs(sentence) & passage.pairs) < MIN_PAIRS:
        return 0.0
    return coverage


def attribute(answer: str, hits: Sequence[PassageHit]) -> tuple[int, ...]:
    """Numbers of the passages that sentences of the answer were taken from, by their words. Often none."""
    return tuple(dict.fromkeys(numbers[0] for _, numbers in _matches(_outside_code(answer), hits)))


def _matches(answer: str, hits: Sequence[PassageHit]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each sentence that can be from one of the passages, with the numbers of these, the likeliest first."""
    passages = []
    for hit in hits:
        terms = _terms(f"{hit.heading} {hit.text}")
        passages.append(_Vocabulary(frozenset(terms), frozenset(_pairs(terms))))
    for start, end in sentences(answer):
        terms = _terms(answer[start:end])
        if len(terms) < MIN_TERMS:
            continue
        supports = {number: _support(terms, passage) for number, passage in enumerate(passages, start=1)}
        likeliest = sorted(supports, key=lambda number: -supports[number])
        if numbers := tuple(number for number in likeliest[:MAX_TRIED] if supports[number] > 0):
            yield answer[start:end], numbers


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends. A quote is never cut, and marks after a full stop belong before it."""
    quoted = [found.span() for found in _QUOTE.finditer(text)]
    start = 0
    for found in _END.finditer(text):
        inside = any(first < found.start() < last - 1 for first, last in quoted)
        before = max(start, found.start() - _ABBREVIATED)
        if inside or (found.group().startswith(".") and _ABBREVIATION.search(text, before, found.start())):
            continue
        end = found.end()
        while following := _MARKED.match(text, end):
            end = following.end()
        if end > start:
            yield start, end
        start = max(start, end)
    if text[start:].strip():
        yield start, len(text)


def _evidence(hit: PassageHit) -> str:
    return f"{hit.file_name}\npage {hit.page}\n{where(hit)}\n{hit.heading}\n{hit.text}"


class _Lookup:
    """What sentences of one answer state, looked up in the passages that were given for it."""

    def __init__(self, answer: str, hits: Sequence[PassageHit]) -> None:
        self._hits = hits
        self._known = capitalised((answer, *(hit.text for hit in hits)), FUNCTION_WORDS)
        self._read: dict[tuple[int, ...], Evidence] = {}

    def missing(self, sentence: str, numbers: tuple[int, ...]) -> list[str]:
        """The pieces of a sentence that none of the passages with these numbers holds."""
        if numbers not in self._read:
            self._read[numbers] = Evidence(_evidence(self._hits[number - 1]) for number in numbers)
        return unsupported(sentence, self._read[numbers], known=self._known, common=FUNCTION_WORDS)


def check(answer: str, hits: Sequence[PassageHit]) -> dict[int, list[str]]:
    """What the sentences that cite passage n state and no passage cited with it holds, by n."""
    answer = _outside_code(answer)
    found = list(marks(answer))
    lookup = _Lookup(answer, hits)
    missing: dict[int, list[str]] = {}
    for start, end in sentences(answer):
        inside = [mark for mark in found if start <= mark.start < end]
        cited = tuple(sorted({n for mark in inside for n in mark.numbers if 1 <= n <= len(hits)}))
        if not cited:
            continue
        for piece in lookup.missing(_MARK.sub(" ", answer[start:end]), cited):
            for number in cited:
                missing.setdefault(number, []).append(piece)
    return missing


def match(answer: str, hits: Sequence[PassageHit]) -> dict[int, list[str]]:
    """The passages that sentences of an answer without marks were taken from, by number in its order, each with what
    these sentences state and it does not hold.

    A sentence is of the likeliest passage that holds all that it states; where none does, of the likeliest.
    """
    answer = _outside_code(answer)
    lookup = _Lookup(answer, hits)
    found: dict[int, list[str]] = {}
    for sentence, numbers in _matches(answer, hits):
        missing = {number: lookup.missing(sentence, (number,)) for number in numbers}
        best = min(numbers, key=lambda number: bool(missing[number]))
        found.setdefault(best, []).extend(missing[best])
    return found


def cite(answer: str, hits: Sequence[PassageHit]) -> tuple[dict[str, Any], ...]:
    """Citations in the form that streams and messages carry, in the order the answer first makes them.

    `hits` are the passages that were given, numbered from 1. A mark for any other number is passed over.
    """
    named = dict.fromkeys(number for mark in marks(answer) for number in mark.numbers)
    known = [number for number in named if 1 <= number <= len(hits)]
    missing = check(answer, hits) if known else match(answer, hits)
    return tuple(
        _citation(
            number,
            hits[number - 1],
            attributed=not known,
            unsupported=list(dict.fromkeys(missing.get(number, ())))[:MAX_LISTED],
        )
        for number in known or missing
    )
