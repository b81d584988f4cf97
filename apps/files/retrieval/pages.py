"""Questions that name pages ("what does page 9 say", "on the last page"). Pure.

Similarity finds what is about the words of a question; these are about a place. The rule is small on purpose:
what it does not recognise is ranked as any other question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_PAGES = 20

_PAGE = r"(?:pages?|pgs?\.?|pp?\.|seiten?|s\.|páginas?|paginas?)"
_NUMBER = r"\d{1,5}"
_RANGE = rf"{_NUMBER}(?:\s*(?:-|–|—|to|through|until|bis|à|a|al)\s*{_NUMBER})?"
_LIST = re.compile(
    rf"(?<!\w){_PAGE}\s*(?:no\.?|number|nr\.?|#)?\s*({_RANGE}(?:\s*(?:,|and|&|und|et|y|e)\s*(?:{_PAGE}\s*)?{_RANGE})*)(?!\w)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"({_NUMBER})(?:\s*(?:-|–|—|to|through|until|bis|à|a|al)\s*({_NUMBER}))?", re.IGNORECASE)
_ORDINALS = {
    word: number
    for number, words in enumerate(
        (
            "first 1st opening erste ersten première primera prima", "second 2nd zweite zweiten deuxième segunda",
            "third 3rd dritte dritten troisième tercera", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th",
            "eighth 8th", "ninth 9th", "tenth 10th",
        ),
        start=1,
    )
    for word in words.split()
}  # fmt: skip
_FROM_END = {
    word: number
    for number, words in enumerate(("last final letzte letzten dernière última ultima", "penultimate"))
    for word in words.split()
}
_ORDINAL = re.compile(rf"(?<!\w)({'|'.join(_ORDINALS)})\s+(?:page|seite|página|pagina)(?!\w)", re.IGNORECASE)
_LAST = re.compile(
    rf"(?<!\w)(next[- ]to[- ]last|second[- ]to[- ]last|{'|'.join(_FROM_END)})\s+(?:page|seite|página|pagina)(?!\w)"
    r"|(?<!\w)(dernière)\s+page(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Directed:
    """What a question points at. `pages` count from 1, `from_end` from 0 at the last page."""

    pages: tuple[int, ...] = ()
    from_end: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.from_end)

    def numbers(self, page_count: int) -> tuple[int, ...]:
        """Page numbers in a file of `page_count` pages, in order."""
        found = {number for number in self.pages if 1 <= number <= page_count}
        found |= {page_count - back for back in self.from_end if 0 <= back < page_count}
        return tuple(sorted(found))[:MAX_PAGES]


def _named(question: str) -> list[int]:
    numbers: list[int] = []
    for mention in _LIST.finditer(question):
        for low, high in _BETWEEN.findall(mention.group(1)):
            first, last = int(low), int(high or low)
            if first > last or last - first >= MAX_PAGES:
                last = min(last, first + MAX_PAGES - 1) if first <= last else first
            numbers += range(first, last + 1)
    numbers += [_ORDINALS[word.lower()] for word in _ORDINAL.findall(question)]
    return numbers


def _from_end(question: str) -> list[int]:
    found = []
    for word, accented in _LAST.findall(question):
        name = (word or accented).lower()
        found.append(1 if "to" in re.split(r"[- ]", name) else _FROM_END.get(name, 0))
    return found


def directed(question: str) -> Directed:
    """Which pages the question names."""
    question = question[:2_000]
    return Directed(tuple(dict.fromkeys(_named(question)))[:MAX_PAGES], tuple(dict.fromkeys(_from_end(question))))


def spread(count: int, wanted: int) -> Sequence[int]:
    """`wanted` places out of `count`, evenly from the first on: what a whole document is shown by."""
    if count <= wanted:
        return range(count)
    return sorted({round(index * (count - 1) / max(1, wanted - 1)) for index in range(wanted)})
