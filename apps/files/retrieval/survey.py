"""Surveys: which passages stand for whole files, and how much of that a prompt holds. Pure.

What is given is in the order of the files. Where not all of it fits, what stays is spread over the files evenly, and
the survey says which pages those are: an answer about a whole file must not look as if all of it had been read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from uuid import UUID

from apps.files.retrieval.context import (
    GivenSources,
    as_data,
    estimate_tokens,
    fit_sources,
    fitting,
    source_size,
)
from apps.files.retrieval.fusion import fingerprint
from apps.files.retrieval.pages import spread
from apps.files.types import OutlineLine, PassageHit, SearchResult, Survey, SurveyedFile

OUTLINE_SHARE = 0.4
FRAME_TOKENS = 48
"""Of the block around the sources."""
MAX_HEADINGS = 60
MAX_LISTED = 500
_ARROW = " > "
_SPACE = re.compile(r"\s+")
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands."""

    passage_id: UUID
    file_id: UUID
    page: int
    heading: str


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that has `words` of the question's words."""

    passage_id: UUID
    file_id: UUID
    page: int
    words: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """The passages of a survey, in the order of the files."""

    passages: tuple[UUID, ...]
    survey: Survey


@dataclass(frozen=True, slots=True)
class Surveyed:
    """Passages of whole files, in their order."""

    hits: tuple[PassageHit, ...]
    survey: Survey


# Choosing


def by_spread(
    files: Sequence[SurveyedFile], places: Sequence[Place], summaries: Sequence[OutlineLine], limit: int
) -> Drawn:
    """Passages evenly through the files, beginnings of sections first, and what is known of their structure."""
    own = {file.file_id: [place for place in places if place.file_id == file.file_id] for file in files}
    there = [file for file in files if own[file.file_id]]
    shares = _shares([len(own[file.file_id]) for file in there], limit)
    chosen = [_through(own[file.file_id], share) for file, share in zip(there, shares, strict=True) if share]
    outline = tuple(line for file in there for line in _outline(own[file.file_id], summaries))
    return _drawn(
        chosen, Survey("summary" if any(line.text for line in outline) else "spread", tuple(files), outline=outline)
    )


def by_words(files: Sequence[SurveyedFile], found: Sequence[Found], words: Sequence[str], limit: int) -> Drawn:
    """Passages that have most of the words that any has; every page of these is named, whether its text fits or not."""
    most = max((one.words for one in found), default=0)
    best = [one for one in found if one.words == most]
    told, chosen = [], []
    for file in files:
        mine = [one for one in best if one.file_id == file.file_id]
        told.append(replace(file, found=tuple(dict.fromkeys(one.page for one in mine))[:MAX_LISTED]))
        if mine:
            chosen.append([mine[index].passage_id for index in _evenly(len(mine))])
    shares = _shares([len(one) for one in chosen], limit)
    position = {one.passage_id: index for index, one in enumerate(best)}
    kept = [sorted(one[:share], key=position.__getitem__) for one, share in zip(chosen, shares, strict=True)]
    return _drawn([(passages, _evenly(len(passages))) for passages in kept], Survey("words", tuple(told), tuple(words)))


def _shares(sizes: Sequence[int], limit: int) -> list[int]:
    """How many of each: the same for all, and what short files leave goes to the longer ones. The first come first."""
    shares = [0] * len(sizes)
    left = min(limit, sum(sizes))
    while left:
        hungry = [index for index, size in enumerate(sizes) if shares[index] < size]
        each = max(1, left // len(hungry))
        for index in hungry[:left]:
            given = min(each, sizes[index] - shares[index])
            shares[index] += given
            left -= given
    return shares


Chosen = tuple[Sequence[UUID], Sequence[int]]
"""Passages of one file in its order, and the order in which they matter."""


def _drawn(chosen: Sequence[Chosen], survey: Survey) -> Drawn:
    passages = [passage for mine, _ in chosen for passage in mine]
    orders, first = [], 0
    for mine, order in chosen:
        orders.append([first + index for index in order])
        first += len(mine)
    in_turn = [index for turn in zip_longest(*orders) for index in turn if index is not None]
    return Drawn(tuple(passages), replace(survey, order=tuple(in_turn)))


def without_gaps(hits: Sequence[PassageHit | None], survey: Survey) -> Surveyed:
    """The passages that were found, copies once; `survey` counts the places among all that were drawn."""
    kept: dict[int, PassageHit] = {}
    seen: set[str] = set()
    for index, hit in enumerate(hits):
        if hit is not None and (mark := fingerprint(hit.text)) not in seen:
            seen.add(mark)
            kept[index] = hit
    places = {index: place for place, index in enumerate(kept)}
    order = tuple(places[index] for index in survey.order if index in places)
    return Surveyed(tuple(kept.values()), replace(survey, order=order))


def _through(places: Sequence[Place], share: int) -> Chosen:
    """At most `share` passages of one file: the beginnings of its sections, then others evenly between."""
    starts = [
        index for index, place in enumerate(places) if not index or _chapter(place) != _chapter(places[index - 1])
    ]
    firsts = {starts[index] for index in spread(len(starts), share)} if len(starts) > 1 else set()
    rest = [index for index in range(len(places)) if index not in firsts]
    others = {rest[index] for index in spread(len(rest), max(0, share - len(firsts)))} if share > len(firsts) else set()
    kept = sorted(firsts | others)
    begins = [place for place, index in enumerate(kept) if index in firsts]
    between = [place for place, index in enumerate(kept) if index not in firsts]
    order = [part[index] for part in (begins, between) for index in _evenly(len(part))]
    return [places[index].passage_id for index in kept], order


def _chapter(place: Place) -> str:
    return place.heading.split(_ARROW, 1)[0]


def _evenly(count: int) -> list[int]:
    """0 to `count - 1` in an order of which every first part is spread over the whole: the ends, then middles."""
    order: list[int] = []
    seen: set[int] = set()
    wanted = 1
    while len(order) < count:
        fresh = [index for index in spread(count, wanted) if index not in seen]
        order += fresh
        seen.update(fresh)
        wanted = 2 * wanted if wanted > 1 else 2
    return order


def _outline(places: Sequence[Place], summaries: Sequence[OutlineLine]) -> Iterator[OutlineLine]:
    """The summaries of the file's sections, or else its headings with their pages."""
    known = [line for line in summaries if line.file_id == places[0].file_id]
    if known:
        yield from known
        return
    lines: dict[str, list[int]] = {}
    for place in places:
        if title := _ARROW.join(place.heading.split(_ARROW)[:2]):
            lines.setdefault(title, []).append(place.page)
    for title, pages in list(lines.items())[:MAX_HEADINGS]:
        yield OutlineLine(places[0].file_id, title, pages[0], pages[-1])


# Fitting


def fit_found(
    found: SearchResult, *, max_tokens: int, count_tokens: Count = estimate_tokens
) -> tuple[str, SearchResult]:
    """The block of sources for a prompt, and the result with just what is in it; of a survey what fits, evenly."""
    if found.survey is None or not found.survey.order:
        given = fit_sources(found.hits, max_tokens=max_tokens, count_tokens=count_tokens, after=found.looked_up)
        return given.block, replace(found, hits=given.hits)
    lines = _fitting_lines(found.survey, int(max_tokens * OUTLINE_SHARE), count_tokens)
    preface = "\n".join(_line(line, found.survey) for line in lines)
    given = _fit_evenly(found, preface, max_tokens, count_tokens)
    return given.block, replace(found, hits=given.hits, survey=_as_given(found.survey, given.hits, lines))


def _fit_evenly(found: SearchResult, preface: str, max_tokens: int, count_tokens: Count) -> GivenSources:
    assert found.survey is not None
    left = max_tokens - FRAME_TOKENS - count_tokens(preface)
    left -= sum(source_size(hit, count_tokens) for hit in fitting(found.looked_up, left, count_tokens))
    kept: list[int] = []
    for index in found.survey.order:
        hit = found.hits[index]
        size = source_size(hit, count_tokens)
        if size > left:
            break
        left -= size
        kept.append(index)
    hits = [found.hits[index] for index in sorted(kept)] or found.hits[:1]
    return fit_sources(hits, max_tokens=max_tokens, count_tokens=count_tokens, preface=preface, after=found.looked_up)


def _fitting_lines(survey: Survey, room: int, count_tokens: Count) -> list[OutlineLine]:
    lines = list(survey.outline)
    sizes = [count_tokens(_line(line, survey)) + 1 for line in lines]
    kept = []
    for index in _evenly(len(lines)):
        if sizes[index] > room:
            break
        room -= sizes[index]
        kept.append(index)
    return [lines[index] for index in sorted(kept)]


def _line(line: OutlineLine, survey: Survey) -> str:
    name = next((file.file_name for file in survey.files if file.file_id == line.file_id), "")
    pages = (
        f"page {line.first_page}" if line.first_page == line.last_page else f"pages {line.first_page}-{line.last_page}"
    )
    title = f", {line.title}" if line.title else ""
    text = f": {line.text}" if line.text else ""
    return _SPACE.sub(" ", as_data(f"Outline: {name}, {pages}{title}{text}"))


def _as_given(survey: Survey, hits: Iterable[PassageHit], lines: Iterable[OutlineLine]) -> Survey:
    read: dict[UUID, set[int]] = {}
    for hit in hits:
        if hit.page:
            read.setdefault(hit.file_id, set()).add(hit.page)
    summed: dict[UUID, set[int]] = {}
    for line in lines:
        if line.text:
            summed.setdefault(line.file_id, set()).update(line.pages)
    files = tuple(
        replace(
            file,
            pages=tuple(sorted(read.get(file.file_id, ()))),
            summarised=tuple(sorted(summed.get(file.file_id, ()))),
        )
        for file in survey.files
    )
    way = "spread" if survey.way == "summary" and not any(summed.values()) else survey.way
    return replace(survey, way=way, files=files, outline=tuple(lines))


# Telling


def survey_note(survey: Survey) -> str:
    """What the model is told of a survey, in sentences; empty when all of the files is given."""
    notes = []
    if survey.words:
        notes.append(f"All pages were searched for: {', '.join(as_data(word) for word in survey.words)}.")
    for file in survey.files:
        notes += _told_of(file, survey)
    return f"\n\n({' '.join(notes)})" if notes else ""


def _told_of(file: SurveyedFile, survey: Survey) -> Iterator[str]:
    name, count = as_data(file.file_name), file.page_count
    if survey.words:
        yield (
            f"In {name} they are on {len(file.found)} of {count} pages: {listed(file.found)}."
            if file.found
            else f"In {name} they are on none of its {count} pages."
        )
        if missing := len(set(file.found) - set(file.pages)):
            yield f"The text of {missing} of these is not among the sources. Say so."
        return
    covered = {*file.pages, *file.summarised}
    if count and len(covered) < count:
        summed = f", and summaries of {len(file.summarised)}" if file.summarised else ""
        yield (
            f"Of {name} you were given the text of {len(file.pages)} of {count} pages{summed}, spread through it. "
            "Say that your answer rests on these."
        )
    elif file.summarised and set(file.pages) < covered:
        yield f"Of {name} you were given the text of {len(file.pages)} of {count} pages, and summaries of the others."


def listed(pages: Sequence[int], most: int = 60) -> str:
    """Page numbers with runs as ranges: 1-3, 7."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:most]]
    return ", ".join(shown) + (" and more" if len(runs) > most else "")


def survey_view(survey: Survey) -> dict[str, object]:
    """The survey as streams, messages and the run's details carry it."""
    return {
        "way": survey.way,
        "words": list(survey.words),
        "files": [
            {
                "file_id": str(file.file_id),
                "file_name": file.file_name,
                "page_count": file.page_count,
                "pages": list(file.pages),
                "summarised": list(file.summarised),
                "found": list(file.found),
            }
            for file in survey.files
        ],
    }
