"""Summaries that are there already, made as rows: for tests of what uses them."""

from __future__ import annotations

from django.utils import timezone

from apps.files.models import File, Summary, SummarySection, SummaryState
from apps.files.summaries.prompts import VERSION
from apps.files.summaries.work import content_of


def make_summary(file: File, *texts: str, model: str = "m") -> Summary:
    """One section a text, each of one page."""
    for ordinal, text in enumerate(texts):
        SummarySection.objects.create(
            file=file,
            organization_id=file.organization_id,
            level=0,
            ordinal=ordinal,
            title=f"Part {ordinal + 1}",
            first_page=ordinal + 1,
            last_page=ordinal + 1,
            pages=[ordinal + 1],
            digest=str(ordinal),
            text=text,
        )
    now = timezone.now()
    return Summary.objects.create(
        file=file,
        organization_id=file.organization_id,
        state=SummaryState.READY,
        content=content_of(file.id),
        model=model,
        version=VERSION,
        tier="free",
        sentences=[{"text": texts[0], "pages": [1], "matched": False}],
        asked_at=now,
        finished_at=now,
    )
