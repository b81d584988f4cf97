"""What a person asks of a summary and sees of it: begin one, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis
from django.db import transaction
from django.utils import timezone

from apps.accounts.types import Actor, ModelPolicy
from apps.core.errors import Conflict, NoReplica, PermissionDenied, RateLimited
from apps.core.valkey import valkey
from apps.files.access import access_file
from apps.files.models import File, FileStage, FileState, StageName, StageState, Summary, SummarySection, SummaryState
from apps.files.pipeline.leases import arm
from apps.files.summaries.prompts import VERSION
from apps.files.summaries.work import content_of
from inference.client import read_records
from inference.registry import summarize
from inference.routing.candidates import candidates_of
from inference.routing.router import forbidden
from inference.routing.types import RoutingPolicy

AT_WORK_PER_OWNER = 3
WAIT_FOR_MODEL_S = 15
_NOT_READY = {
    FileState.NEEDS_PASSWORD: "Open the file with its password first.",
    FileState.FAILED: "The file could not be read, so that there is nothing to summarise.",
}


@dataclass(frozen=True, slots=True)
class SectionInfo:
    """A part of the file; without `text` until it is made. `pages`: those whose text the model was given."""

    title: str
    first_page: int
    last_page: int
    pages: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SummaryInfo:
    """`state` is "none" where nobody asked. `waiting`: no model has time at this moment. `outdated`: pages were read
    after it was made. `steps_done` of `steps` requests to the model were answered."""

    state: str
    model: str = ""
    waiting: bool = False
    outdated: bool = False
    steps: int = 0
    steps_done: int = 0
    sections: tuple[SectionInfo, ...] = ()
    sentences: tuple[dict[str, Any], ...] = ()
    page_count: int = 0
    error_code: str = ""
    error_message: str = ""

    def as_json(self) -> dict[str, Any]:
        error = {"code": self.error_code, "message": self.error_message} if self.error_code else None
        return {
            "state": self.state,
            "model": self.model or None,
            "waiting": self.waiting,
            "outdated": self.outdated,
            "steps": self.steps,
            "steps_done": self.steps_done,
            "sections": [
                {
                    "title": section.title,
                    "first_page": section.first_page,
                    "last_page": section.last_page,
                    "pages_given": len(section.pages),
                    "text": section.text or None,
                }
                for section in self.sections
            ],
            "sentences": list(self.sentences),
            "pages_covered": len({page for section in self.sections for page in section.pages}),
            "page_count": self.page_count,
            "error": error,
        }


def get_summary(actor: Actor, file_id: object) -> SummaryInfo:
    """Where the file's summary stands. Raises NotFound for a file that may not be seen."""
    return _info(access_file(actor, file_id))


def ask_for_summary(actor: Actor, file_id: object) -> SummaryInfo:
    """The summary if it is there and of what the file says now; else it is begun, or goes on.

    Raises NotFound, Conflict (the file was not read), RateLimited (too many are being made), PermissionDenied and
    NoReplica (no model may, or can, make it).
    """
    file = access_file(actor, file_id)
    if file.state not in (FileState.READY, FileState.PARTIAL):
        raise Conflict(_NOT_READY.get(FileState(file.state), "The file is still being read. Ask when it is ready."))
    content = content_of(file.id)
    known = Summary.objects.filter(file=file).first()
    if known and known.version == VERSION and known.state == SummaryState.READY and known.content == content:
        return _info(file)
    if known and known.version == VERSION and _at_work(file):
        return _info(file)
    model = _choose_model(actor.policy, known.model if known else "")
    with transaction.atomic():
        file = access_file(actor, file_id, lock=True)
        _check_room(actor, file)
        values = {
            "organization_id": file.organization_id,
            "state": SummaryState.WORKING,
            "model": model,
            "version": VERSION,
            "tier": actor.tier.value,
            "region": actor.policy.region,
            "sentences": [],
            "error_code": "",
            "error_message": "",
            "asked_at": timezone.now(),
            "finished_at": None,
        }
        Summary.objects.update_or_create(file=file, defaults=values)
        arm(file, StageName.SUMMARY)
    return _info(file)


def _at_work(file: File) -> bool:
    unfinished = (StageState.PENDING, StageState.RUNNING)
    return FileStage.objects.filter(file=file, name=StageName.SUMMARY, state__in=unfinished).exists()


def _check_room(actor: Actor, file: File) -> None:
    at_work = FileStage.objects.filter(
        name=StageName.SUMMARY,
        state__in=(StageState.PENDING, StageState.RUNNING),
        organization_id=actor.organization_id,
        file__owner_id=actor.user_id,
    ).exclude(file=file)
    if at_work.count() >= AT_WORK_PER_OWNER:
        raise RateLimited(
            f"{AT_WORK_PER_OWNER} of your files are being summarised. Wait for one to end.", retry_after_s=10
        )


def _choose_model(policy: ModelPolicy, before: str) -> str:
    """What `auto` stands for among the models that are ready and that the organization may use; the one that began
    where it still can, as what it made is kept by its name."""
    try:
        records = read_records(valkey())
    except redis.RedisError as error:
        raise NoReplica("Nobody knows which models run. Try again in a moment.", retry_after_s=5) from error
    candidates = candidates_of(records, policy.region)
    rules = RoutingPolicy(models=policy.models, level_at_most=policy.level_at_most)
    allowed = {c.id for c in candidates if not forbidden(c, rules, policy.region)}
    if candidates and not allowed:
        raise PermissionDenied("Your organization may use none of the models that run.")
    here = [record for record in records if policy.region in ("", record.replica.region)]
    ready = [model.id for model in summarize(here) if model.id in allowed and model.replicas_ready]
    if not ready:
        raise NoReplica("No model is running that could summarise it. Try again later.", retry_after_s=WAIT_FOR_MODEL_S)
    return before if before in ready else ready[0]


def _info(file: File) -> SummaryInfo:
    summary = Summary.objects.filter(file=file).first()
    if summary is None:
        return SummaryInfo("none", page_count=file.page_count or 0)
    rows = list(SummarySection.objects.filter(file=file).order_by("level", "ordinal"))
    stage = FileStage.objects.filter(file=file, name=StageName.SUMMARY).first()
    waiting = bool(stage and stage.state == StageState.PENDING and stage.due_at and stage.due_at > timezone.now())
    ready = summary.state == SummaryState.READY
    return SummaryInfo(
        state=summary.state,
        model=summary.model,
        waiting=summary.state == SummaryState.WORKING and waiting,
        outdated=ready and (summary.version != VERSION or summary.content != content_of(file.id)),
        steps=len(rows),
        steps_done=sum(row.text != "" for row in rows),
        sections=tuple(
            SectionInfo(row.title, row.first_page, row.last_page, tuple(row.pages), row.text)
            for row in rows
            if row.level == 0
        ),
        sentences=tuple(summary.sentences),
        page_count=file.page_count or 0,
        error_code=summary.error_code,
        error_message=summary.error_message,
    )
