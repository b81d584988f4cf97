"""Which parts a file is summarised in: sections along its headings, then groups of their summaries. Pure.

Bounded in sections and levels whatever the length of the file: where a section has more text than a model can be given,
passages evenly through it stand for it, and its pages say which those were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from apps.files.retrieval.context import estimate_tokens
from apps.files.retrieval.pages import spread

MAX_SECTIONS = 96
MAX_GIVEN_TOKENS = 3_000
"""Of text that one request has, where the model's context allows it."""
OUTPUT_TOKENS = 220
OVERHEAD_TOKENS = 260
"""The instructions, and what a chat template adds."""
MAX_FAN_IN = 12
SECTION_MIN = 0.4
"""A heading begins a new section once the present one has this part of what a section may have."""
_ARROW = " > "
_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Source:
    """A passage of the file, as far as a summary needs it."""

    page: int
    heading: str
    text: str

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text) + 8


@dataclass(frozen=True, slots=True)
class Section:
    """What one request summarises: the sources at level 0, the sections `first` to `last - 1` of the level below above
    it. `pages`: those whose text is given."""

    level: int
    ordinal: int
    title: str
    first_page: int
    last_page: int
    pages: tuple[int, ...]
    digest: str
    sources: tuple[Source, ...] = ()
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """`levels[-1]` is one section, which is the summary of the whole."""

    levels: tuple[tuple[Section, ...], ...]

    @property
    def count(self) -> int:
        return sum(len(level) for level in self.levels)


def given_tokens(context_length: int) -> int:
    """Tokens of text that fit a request to a model. Never less than a quarter of its context."""
    return min(MAX_GIVEN_TOKENS, max(context_length // 4, context_length - OUTPUT_TOKENS - OVERHEAD_TOKENS))


def make_plan(sources: Sequence[Source], *, context_length: int, made_by: str) -> Plan:
    """The sections of all levels. `made_by` names model and prompts, which are part of every digest.

    Raises ValueError without sources.
    """
    if not sources:
        raise ValueError("there is nothing to summarise")
    budget = given_tokens(context_length)
    fan_in = max(2, min(MAX_FAN_IN, budget // (OUTPUT_TOKENS + 20)))
    leaves = tuple(_leaf(ordinal, group, budget, made_by) for ordinal, group in enumerate(_groups(sources, budget)))
    levels = [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        # Groups of nearly the same size: a rest of one would be summarised alone.
        groups = ceil(len(below) / fan_in)
        bounds = [len(below) * index // groups for index in range(groups + 1)]
        levels.append(
            tuple(
                _above(len(levels), ordinal, below[first:last], first, made_by)
                for ordinal, (first, last) in enumerate(pairwise(bounds))
            )
        )
    return Plan(tuple(levels))


def _groups(sources: Sequence[Source], budget: int) -> list[list[Source]]:
    total = sum(source.tokens for source in sources)
    # Two neighbours together are always more than the target, so that there are never more than the most.
    target = max(budget, ceil(2 * total / MAX_SECTIONS))
    found = _along_headings(sources, target, SECTION_MIN)
    return found if len(found) <= MAX_SECTIONS else _along_headings(sources, target, 1.0)


def _along_headings(sources: Sequence[Source], target: int, least: float) -> list[list[Source]]:
    groups: list[list[Source]] = []
    size = 0
    for source in sources:
        fresh = bool(groups) and _chapter(source) != _chapter(groups[-1][-1]) and size >= least * target
        if not groups or fresh or size + source.tokens > target:
            groups.append([])
            size = 0
        groups[-1].append(source)
        size += source.tokens
    return groups


def _chapter(source: Source) -> str:
    return source.heading.split(_ARROW, 1)[0]


def _leaf(ordinal: int, group: Sequence[Source], budget: int, made_by: str) -> Section:
    given = _fitting(group, budget)
    digest = _digest(made_by, *(f"{source.page}\n{source.heading}\n{source.text}" for source in given))
    pages = tuple(dict.fromkeys(source.page for source in given))
    first, last = group[0].page, max(source.page for source in group)
    return Section(0, ordinal, _title(group), first, last, pages, digest, sources=tuple(given))


def _fitting(group: Sequence[Source], budget: int) -> list[Source]:
    """All of it, or as many as fit, evenly through it."""
    size = sum(source.tokens for source in group)
    if size <= budget:
        return list(group)
    wanted = max(1, len(group) * budget // size)
    kept: list[Source] = []
    left = budget
    for index in spread(len(group), wanted):
        if group[index].tokens <= left or not kept:
            kept.append(group[index])
            left -= group[index].tokens
    return kept


def _title(group: Sequence[Source]) -> str:
    """The headings that all of the section stands under, else the first it has."""
    paths = [source.heading.split(_ARROW) for source in group]
    common = 0
    while all(len(path) > common and path[common] == paths[0][common] for path in paths):
        common += 1
    return _ARROW.join(paths[0][: max(1, common)])[:_TITLE_CHARS]


def _above(level: int, ordinal: int, below: Sequence[Section], first: int, made_by: str) -> Section:
    pages = tuple(dict.fromkeys(page for section in below for page in section.pages))
    digest = _digest(made_by, *(section.digest for section in below))
    title = next((section.title for section in below if section.title), "")
    ends = max(section.last_page for section in below)
    return Section(
        level, ordinal, title, below[0].first_page, ends, pages, digest, first=first, last=first + len(below)
    )


def _digest(*parts: str) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()
