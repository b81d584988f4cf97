"""Search: which passages of the actor's files a question needs, in three or four statements of one snapshot.

What models are asked, the question's vector and the reranking, lies before and after the snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import orjson
from django.db import connection, transaction

from apps.accounts.types import Actor
from apps.core.db import in_db
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.embedding import as_literal
from apps.files.indexing.lexical import prepare
from apps.files.indexing.nearest import has_index
from apps.files.indexing.pages import CARDS
from apps.files.indexing.vectors import embed_question
from apps.files.indexing.versions import Served, check, served
from apps.files.retrieval import sql, survey
from apps.files.retrieval.fusion import Candidate, Spread, fuse, level, without_duplicates
from apps.files.retrieval.pages import Directed, directed
from apps.files.retrieval.reranking import depth_for, rerank
from apps.files.retrieval.survey import Surveyed
from apps.files.retrieval.whole import Asks, asks_for, words_of
from apps.files.types import LeftOut, Locator, OutlineLine, PassageHit, SearchResult, SurveyedFile, UnreadyFile

EXACT_BELOW = 10_000
"""Passages in scope up to which each is compared: 1.8 ms at a thousand, and nothing is missed."""
DEPTH = 100
MAX_LIMIT = 50
MAX_FILES = 1_000
MAX_ON_PAGES = 200
MAX_QUESTION_CHARS = 8_000
_READING = frozenset({"uploading", "processing"})

Row = tuple[Any, ...]
Mode = Literal["hybrid", "mixed", "keyword", "away"]


@dataclass(frozen=True, slots=True)
class _FileState:
    id: UUID
    name: str
    page_count: int
    unready: UnreadyFile | None
    left_out: LeftOut | None

    @property
    def has_text(self) -> bool:
        """Whether some of it was read, or may be; of other files nothing is said but why not."""
        known = self.unready is None or self.unready.state == "reading" or bool(self.unready.pages_failed)
        return self.page_count > 0 and known


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """What a question means to one version of vectors, as the database reads it."""

    version: str
    dimensions: int
    literal: str


@dataclass(frozen=True, slots=True)
class _Question:
    """`unasked`: versions that are searched by keywords alone, because what made them is away."""

    text: str
    vectors: tuple[QuestionVector, ...] = ()
    unasked: tuple[str, ...] = ()


class _Search:
    """The statements of one search, with what they share."""

    def __init__(self, actor: Actor, file_ids: Sequence[UUID], question: _Question) -> None:
        self.question = question
        self.parameters: dict[str, Any] = {
            "organization": actor.organization_id,
            "owner": actor.user_id,
            "files": list(dict.fromkeys(file_ids))[:MAX_FILES],
            "asked": [vector.version for vector in question.vectors],
            "unasked": list(question.unasked),
            "depth": DEPTH,
        }
        for n, vector in enumerate(question.vectors):
            self.parameters |= {f"version_{n}": vector.version, f"vector_{n}": vector.literal}

    def rows(self, statement: str, **extra: Any) -> list[Row]:
        with connection.cursor() as cursor:
            cursor.execute(statement, {**self.parameters, **extra})
            found: list[Row] = cursor.fetchall()
            return found

    def files(self) -> list[_FileState]:
        states = []
        for id, name, count, notices, tables, *rest in self.rows(sql.FILES):
            unready, left_out = _unready(id, name, count, *rest), _left_out(id, name, notices, tables=tables)
            states.append(_FileState(id, name, count or 0, unready, left_out))
        return states

    def candidates(self) -> tuple[list[Candidate], Mode]:
        """The best by keywords and the best by meaning, with both scores of each."""
        ((passages, embedded),) = self.rows(sql.SIZE)
        if not passages:
            return [], "hybrid"
        prepared = prepare(self.question.text)
        some_away = bool(self.question.unasked) and self.rows(sql.UNASKED) == [(True,)]
        if not embedded:
            mode: Mode = "away" if some_away or not self.question.vectors else "keyword"
            return [Candidate(*row) for row in self.rows(sql.KEYWORD, question=prepared)], mode
        rows = self.rows(sql.hybrid(self._dimensions(passages)), question=prepared)
        return self._levelled(rows), "mixed" if some_away else "hybrid"

    def _dimensions(self, passages: int) -> tuple[int | None, ...]:
        """Of each version, where its index is to be used; None where each passage is compared."""
        vectors = self.question.vectors
        if passages <= EXACT_BELOW:
            return (None,) * len(vectors)
        self.rows_without_result(sql.APPROXIMATE_SETTINGS)
        return tuple(vector.dimensions if has_index(vector.dimensions) else None for vector in vectors)

    def _levelled(self, rows: Sequence[Row]) -> list[Candidate]:
        """The cosines of all versions on the scale of the one with most passages here."""
        versions = len(self.question.vectors)
        if versions == 1:
            return [Candidate(*row[:4]) for row in rows]
        spreads = {n: Spread(*rest) for n, *rest in self.rows(sql.spreads(versions))}
        common = max(spreads.values(), key=lambda spread: spread.count)
        return [
            Candidate(passage_id, file_id, keyword, None if n is None else level(cosine, spreads[n], common))
            for passage_id, file_id, keyword, cosine, n in rows
        ]

    def rows_without_result(self, statements: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statements)

    def ranked(self, depth: int) -> tuple[list[PassageHit], Mode]:
        candidates, mode = self.candidates()
        best = fuse(candidates)[:depth]
        found = {row[0]: row for row in self.rows(sql.PASSAGES, passages=[passage_id for passage_id, _ in best])}
        return [_hit(found[passage_id], score) for passage_id, score in best if passage_id in found], mode

    def on_pages(self, places: Iterable[tuple[UUID, int]], limit: int) -> list[PassageHit]:
        files, numbers = zip(*places, strict=True)
        rows = self.rows(sql.ON_PAGES, page_files=list(files), page_numbers=list(numbers), limit=limit)
        return [_hit(row, 1.0) for row in rows]


@dataclass(frozen=True, slots=True)
class _Found:
    """What the snapshot held. `first` are the passages of pages that the question names."""

    ranked: list[PassageHit]
    mode: Mode
    first: list[PassageHit]
    unready: tuple[UnreadyFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    surveyed: Surveyed | None = None


def _asked(actor: Actor, question: str, versions: Sequence[Served]) -> _Question:
    """The question, as each version of vectors understands it whose embedder is there."""
    vectors, unasked = [], []
    for one in versions:
        try:
            vector = embed_question(
                question, user_id=actor.user_id, organization_id=actor.organization_id, version=one.version
            )
            check(one.version, one.dimensions, len(vector))
            vectors.append(QuestionVector(one.version, len(vector), as_literal(vector)))
        except EmbedderUnavailable:
            unasked.append(one.version)
    return _Question(question, tuple(vectors), tuple(unasked))


def _unready(
    file_id: UUID, name: str, count: int | None, state: str, reason: str, pending: list[int], failed: list[int]
) -> UnreadyFile | None:
    """What of a file cannot be searched; None where all of it can."""
    if state == "needs_password":
        return UnreadyFile(file_id, name, state="needs_password")
    if state == "failed":
        return UnreadyFile(file_id, name, state="failed", reason=reason)
    reading = state in _READING
    if pending or failed or (reading and not count):
        return UnreadyFile(file_id, name, tuple(pending), tuple(failed), "reading" if reading else "failed")
    return None


def _left_out(file_id: UUID, name: str, notices: Sequence[str], *, tables: bool) -> LeftOut | None:
    """What was left out of a file when it was read. Pages of one with tables may be cut short where these are not."""
    codes = ("text_cut_short" if tables and code == "cut_short" else code for code in dict.fromkeys(notices))
    return LeftOut(file_id, name, tuple(codes)) if notices else None


def _hit(row: Row, score: float) -> PassageHit:
    passage_id, file_id, name, page, heading, text, boxes, locator, source, ordinal = row
    return PassageHit(
        passage_id=passage_id,
        file_id=file_id,
        file_name=name,
        page=page,
        heading=heading,
        text=text,
        boxes=tuple((box[0], box[1], box[2], box[3]) for box in orjson.loads(boxes)),
        source="ocr" if source == "ocr" else "digital",
        score=round(score, 6),
        table=ordinal + 1 if page == CARDS else None,
        locator=Locator.of_json(orjson.loads(locator)) if locator else None,
    )


def _directed_hits(search: _Search, wanted: Directed, files: Sequence[_FileState]) -> list[PassageHit]:
    """Passages of the pages that the question names."""
    places = [(file.id, number) for file in files for number in wanted.numbers(file.page_count)]
    return search.on_pages(places, MAX_ON_PAGES) if places else []


def _surveyed(search: _Search, asks: Asks, files: Sequence[_FileState], limit: int) -> Surveyed | None:
    """The survey that the question needs; None where the files have nothing to give yet."""
    drawn = [SurveyedFile(file.id, file.name, file.page_count) for file in files if file.has_text]
    if not drawn:
        return None
    if asks in (Asks.LIST, Asks.COUNT) and (words := words_of(search.question.text)):
        rows = search.rows(sql.WORDS, question=prepare(" ".join(words)))
        plan = survey.by_words(drawn, [survey.Found(*row) for row in rows], words, limit)
    else:
        places = [survey.Place(*row) for row in search.rows(sql.OUTLINE)]
        lines = [
            OutlineLine(file_id, title, first, last, text, tuple(pages))
            for file_id, title, first, last, text, pages in search.rows(sql.SUMMARIES)
        ]
        plan = survey.by_spread(drawn, places, lines, limit)
    rows = search.rows(sql.PASSAGES, passages=list(plan.passages))
    hits = {row[0]: _hit(row, 1.0) for row in rows}
    if not hits and not plan.survey.words:
        return None
    return survey.without_gaps([hits.get(passage) for passage in plan.passages], plan.survey)


def _merge(first: Sequence[PassageHit], ranked: Sequence[PassageHit], limit: int) -> tuple[PassageHit, ...]:
    """Page-directed passages, in the order of the pages, then the others where there is room.

    Where the pages have too many, those that rank high for the question stay. When they fill half the place, the
    others are left out: what stands elsewhere would only distract.
    """
    if len(first) > limit:
        rank = {hit.passage_id: index for index, hit in enumerate(ranked)}
        kept = sorted(range(len(first)), key=lambda index: (rank.get(first[index].passage_id, len(ranked)), index))
        first = [first[index] for index in sorted(kept[:limit])]
    others = ranked if 2 * len(first) < limit else []
    return tuple(without_duplicates(((hit.text, hit) for hit in (*first, *others)), limit))


def search_passages(
    actor: Actor, *, file_ids: Sequence[UUID], query: str, limit: int = 8, survey_limit: int = 0
) -> SearchResult:
    """The passages of these files that the question needs, best first, as far as the actor may see them.

    A question about whole files gets a survey of them instead, of `survey_limit` passages where that is given. Unknown,
    foreign and deleted files contribute nothing; `unready` names files of which pages are still being read or could not
    be read, `left_out` those that were not read whole. Raises nothing of its own.
    """
    question, limits = _bounded(query, limit, survey_limit)
    if not file_ids:
        return SearchResult((), "keyword", ())
    found = _find(actor, file_ids, _asked(actor, question, served()), limits)
    return _result(actor, question, found, limits[0])


async def asearch_passages(
    actor: Actor, *, file_ids: Sequence[UUID], query: str, limit: int = 8, survey_limit: int = 0
) -> SearchResult:
    """`search_passages` for async code: waiting for models holds no database thread."""
    question, limits = _bounded(query, limit, survey_limit)
    if not file_ids:
        return SearchResult((), "keyword", ())
    asked = await asyncio.to_thread(_asked, actor, question, await in_db(served))
    found = await in_db(_find, actor, file_ids, asked, limits)
    return await asyncio.to_thread(_result, actor, question, found, limits[0])


Limits = tuple[int, int]
"""Passages that are ranked, and passages of a survey."""


def _bounded(query: str, limit: int, survey_limit: int) -> tuple[str, Limits]:
    limit = max(1, min(limit, MAX_LIMIT))
    return query.replace("\x00", " ")[:MAX_QUESTION_CHARS], (limit, max(1, min(survey_limit or limit, MAX_LIMIT)))


def _find(actor: Actor, file_ids: Sequence[UUID], question: _Question, limits: Limits) -> _Found:
    with transaction.atomic():
        search = _Search(actor, file_ids, question)
        files = search.files()
        if not files:
            return _Found([], "hybrid", [], ())
        ranked, mode = search.ranked(depth_for(limits[0]))
        wanted, asks = directed(question.text), asks_for(question.text)
        first = _directed_hits(search, wanted, files) if wanted else []
        surveyed = _surveyed(search, asks, files, limits[1]) if asks and not wanted else None
    unready = tuple(file.unready for file in files if file.unready is not None)
    left_out = tuple(file.left_out for file in files if file.left_out is not None and file.has_text)
    return _Found(ranked, mode, first, unready, left_out, surveyed)


def _result(actor: Actor, question: str, found: _Found, limit: int) -> SearchResult:
    whole = found.surveyed
    if whole is not None and whole.hits:
        return SearchResult(whole.hits, found.mode, found.unready, survey=whole.survey, left_out=found.left_out)
    hits, reranked = rerank(actor, question, found.ranked)
    best = without_duplicates(((hit.text, hit) for hit in hits), limit)
    told = whole.survey if whole is not None else None  # the words stand nowhere, which is worth saying
    merged = _merge(found.first, best, limit)
    return SearchResult(merged, found.mode, found.unready, reranked, told, left_out=found.left_out)
