"""The stage `summary`: a worker makes the sections that are missing, a few at a time, then what stands above them.

Each section is a row, written under the claim's fence the moment it is made: whoever goes on after a kill makes only
what is missing, and a worker that lost its lease writes nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from apps.core.isolation import cache_salt
from apps.core.valkey import valkey
from apps.files.models import Passage, StageName, Summary, SummarySection, SummaryState
from apps.files.pipeline import leases
from apps.files.pipeline.leases import Claim, LeaseLost
from apps.files.retrieval.context import estimate_tokens
from apps.files.summaries import prompts
from apps.files.summaries.plan import OUTPUT_TOKENS, Plan, Section, Source, make_plan
from apps.files.summaries.prompts import Sentence
from inference.client import Tier, read_models
from inference.protocol import EngineRejected, InferenceError, ModelInfo
from inference.writing import Commission, Text, WriterThread

log = structlog.get_logger(__name__)
AT_ONCE = 4
"""Sections asked for at a time; each has a place of its own in the batch lane."""
TEMPLATE_TOKENS = 32
"""What a chat template adds."""
SLICE_S = 20.0
"""After this long others' files have their turn."""
WAIT_S, WAIT_MAX_S = 5.0, 60.0
PATIENCE = timedelta(minutes=30)
_FAULTS = {
    "no_model": "No model had time for the summary. Try again later.",
    "refused": "The model refused to summarise this. Choose another one for your organization, or ask your operator.",
    "crashed": "The summary failed again and again. Try again later.",
    "empty": "There is nothing to summarise in the file.",
}
Lost = threading.Event

# Of texts, not of ids: a copy of the file has the same.
_CONTENT = """
    SELECT md5(coalesce(string_agg(md5(text), '' ORDER BY page_number, ordinal), ''))
    FROM files_passage WHERE file_id = %s
"""


class _Away(Exception):
    """No model can be asked at this time."""


class _Refused(Exception):
    """It ends without a summary; the text is a code of `_FAULTS`."""


@lru_cache(maxsize=1)
def writer() -> WriterThread:
    """This process's way to the chat models."""
    return WriterThread(settings.REDIS_URL, settings.ADMISSION_POLICY)


def content_of(file_id: UUID) -> str:
    """Names what the file says now."""
    with connection.cursor() as cursor:
        cursor.execute(_CONTENT, [file_id])
        return str(cursor.fetchone()[0])


def run(file_id: UUID) -> None:
    """Go on with the file's summary if it is due. What is raised is a bug: the lease runs out and it is tried again."""
    held = leases.claim(file_id, StageName.SUMMARY)
    if held is None:
        return
    try:
        if held.failures >= leases.MAX_FAILURES:
            raise _Refused("crashed")
        with leases.kept(held) as lost:
            done = _make(held, lost)
        if not done:
            leases.postpone(held, 0)
    except LeaseLost:
        log.info("summary.lease_lost", file_id=str(file_id))
    except _Refused as error:
        _unless_lost(partial(_fail, held, str(error)))
    except _Away:
        _unless_lost(partial(_wait, held))
    except (OperationalError, InterfaceError, OSError, SoftTimeLimitExceeded) as error:
        log.warning("summary.retry", file_id=str(file_id), error=repr(error))
        _unless_lost(partial(leases.retry, held))


def _unless_lost(end: Callable[[], object]) -> None:
    try:
        end()
    except LeaseLost:
        log.info("summary.lease_lost_at_end")


def _wait(held: Claim) -> None:
    """A tenth of its age: short for who watches it. Given up when that is too long to be watched."""
    age = timezone.now() - Summary.objects.get(file_id=held.file_id).asked_at
    if age > PATIENCE:
        _fail(held, "no_model")
    else:
        leases.postpone(held, min(WAIT_MAX_S, max(WAIT_S, age.total_seconds() / 10)))


def _fail(held: Claim, code: str) -> None:
    with leases.fence(held):
        leases.finish(held, code=code, message=_FAULTS[code])
        Summary.objects.filter(file_id=held.file_id).update(
            state=SummaryState.FAILED, error_code=code, error_message=_FAULTS[code], finished_at=timezone.now()
        )


# Making


def _make(held: Claim, lost: Lost) -> bool:
    """False when the slice ended before the work. Raises LeaseLost, _Away, _Refused."""
    ends = time.monotonic() + SLICE_S
    summary = Summary.objects.get(file_id=held.file_id)
    model = _model(summary)
    content = content_of(held.file_id)
    if _copy(held, summary, content):
        return True
    plan = _plan(held.file_id, model, summary)
    making = _Making(held, summary, plan, _laid_out(held, summary, content, plan))
    for level in plan.levels:
        missing = [section for section in level if section.digest not in making.made]
        for first in range(0, len(missing), AT_ONCE):
            if lost.is_set():
                raise LeaseLost
            if time.monotonic() > ends:
                return False
            making.ask(missing[first : first + AT_ONCE])
    making.finish()
    return True


def _model(summary: Summary) -> ModelInfo:
    found = next((model for model in read_models(valkey()) if model.id == summary.model), None)
    if found is None or not found.replicas_ready:
        raise _Away
    return found


def made_by(summary: Summary) -> str:
    return f"{summary.model}\n{summary.version}"


def _plan(file_id: UUID, model: ModelInfo, summary: Summary) -> Plan:
    rows = Passage.objects.filter(file_id=file_id).order_by("page_number", "ordinal")
    sources = [Source(*row) for row in rows.values_list("page_number", "heading", "text")]
    if not sources:
        raise _Refused("empty")
    return make_plan(sources, context_length=model.context_length or 2_048, made_by=made_by(summary))


def _copy(held: Claim, summary: Summary, content: str) -> bool:
    """Take the summary of another file of this owner with the same content, made the same way. Never across owners."""
    with leases.fence(held):
        other = (
            Summary.objects.filter(
                organization_id=held.organization_id,
                file__organization_id=held.organization_id,
                file__owner_id=held.owner_id,
                file__deleted_at=None,
                content=content,
                model=summary.model,
                version=summary.version,
                state=SummaryState.READY,
            )
            .exclude(file_id=held.file_id)
            .first()
        )
        if other is None:
            return False
        sections = list(SummarySection.objects.filter(file_id=other.file_id))
        for section in sections:
            section.pk, section.file_id = None, held.file_id
        SummarySection.objects.filter(file_id=held.file_id).delete()
        SummarySection.objects.bulk_create(sections)
        Summary.objects.filter(file_id=held.file_id).update(
            state=SummaryState.READY, content=content, sentences=other.sentences, finished_at=timezone.now()
        )
        leases.finish(held)
    return True


def _laid_out(held: Claim, summary: Summary, content: str, plan: Plan) -> dict[str, str]:
    """Texts that are there already, by digest. Rows that the plan does not have go, those that it needs are added."""
    wanted = [section for level in plan.levels for section in level]
    with leases.fence(held):
        rows = SummarySection.objects.filter(file_id=held.file_id)
        known = dict(rows.exclude(text="").values_list("digest", "text"))
        there = set(rows.values_list("level", "ordinal", "digest"))
        if there != {(section.level, section.ordinal, section.digest) for section in wanted}:
            rows.delete()
            SummarySection.objects.bulk_create(_row(held, section, known) for section in wanted)
        if content != summary.content:
            Summary.objects.filter(file_id=held.file_id).update(content=content)
    return {section.digest: known[section.digest] for section in wanted if section.digest in known}


def _row(held: Claim, section: Section, known: dict[str, str]) -> SummarySection:
    return SummarySection(
        file_id=held.file_id,
        organization_id=held.organization_id,
        level=section.level,
        ordinal=section.ordinal,
        title=section.title,
        first_page=section.first_page,
        last_page=section.last_page,
        pages=list(section.pages),
        digest=section.digest,
        text=known.get(section.digest, ""),
    )


class _Making:
    """One plan on its way: `made` are the texts that are there, by digest."""

    def __init__(self, held: Claim, summary: Summary, plan: Plan, made: dict[str, str]) -> None:
        self.held, self.summary, self.plan, self.made = held, summary, plan, made
        self._read: dict[str, tuple[Sentence, ...]] = {}

    def parts(self, section: Section) -> list[tuple[Section, tuple[Sentence, ...]]]:
        below = self.plan.levels[section.level - 1][section.first : section.last] if section.level else ()
        return [(part, self.sentences(part)) for part in below]

    def sentences(self, section: Section) -> tuple[Sentence, ...]:
        if section.digest not in self._read:
            self._read[section.digest] = self._sentences_of(self.made[section.digest], section)
        return self._read[section.digest]

    def _sentences_of(self, answer: str, section: Section) -> tuple[Sentence, ...]:
        parts = self.parts(section)
        evidence = prompts.evidence_in(parts) if parts else prompts.evidence_of(section.sources)
        return prompts.read_answer(answer, section, evidence)

    def ask(self, sections: Sequence[Section]) -> None:
        """Make these; what came is kept, also when another of them failed. Raises _Away, _Refused, LeaseLost."""
        answers = writer().write_all(_commission(self.held, self.summary), [self._text(one) for one in sections])
        for section, answer in zip(sections, answers, strict=True):
            if isinstance(answer, str) and (
                text := prompts.as_text(self._sentences_of(answer, section), matched=False)
            ):
                self._keep(section, text)
        _check(answers)
        if any(section.digest not in self.made for section in sections):
            raise _Away  # a model that says nothing may say something later; patience has its end

    def _text(self, section: Section) -> Text:
        parts = self.parts(section)
        messages = prompts.whole_messages(section, parts) if parts else prompts.part_messages(section)
        used = sum(estimate_tokens(message.content) for message in messages) + TEMPLATE_TOKENS
        return Text(messages, used, OUTPUT_TOKENS)

    def _keep(self, section: Section, text: str) -> None:
        with leases.fence(self.held):
            SummarySection.objects.filter(
                file_id=self.held.file_id, level=section.level, ordinal=section.ordinal, digest=section.digest
            ).update(text=text)
        self.made[section.digest] = text

    def finish(self) -> None:
        """Pages may have been read again meanwhile: then this is the summary of what was, and its digest says so."""
        ((top,),) = self.plan.levels[-1:]
        views = [sentence.view() for sentence in self.sentences(top)]
        with leases.fence(self.held):
            Summary.objects.filter(file_id=self.held.file_id).update(
                state=SummaryState.READY, sentences=views, finished_at=timezone.now()
            )
            leases.finish(self.held)


def _commission(held: Claim, summary: Summary) -> Commission:
    return Commission(
        model=summary.model,
        tier=Tier(summary.tier),
        user=f"files:{held.owner_id}",
        organization=str(held.organization_id),
        region=summary.region,
        cache_salt=cache_salt(held.organization_id),
    )


def _check(answers: Sequence[str | InferenceError]) -> None:
    for answer in answers:
        if isinstance(answer, EngineRejected):
            log.error("summary.refused", error=str(answer))
            raise _Refused("refused")
        if isinstance(answer, InferenceError):
            log.info("summary.away", error=str(answer))
            raise _Away
