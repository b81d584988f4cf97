"""Rows of summaries: where one stands, and its sections."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models


class SummaryState(models.TextChoices):
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


class Summary(models.Model):
    """A file's summary that was asked for. Its work is the stage `summary`, its parts are `SummarySection`.

    `content` is a digest of the passages it is of. With the model and the version of the prompts it is what a summary
    is kept by; `region` is the one that the organization's policy bound it to when it was asked for.
    """

    file = models.OneToOneField("files.File", on_delete=models.CASCADE, primary_key=True, related_name="summary")
    organization_id = models.UUIDField()
    state = models.CharField(max_length=8, choices=SummaryState, default=SummaryState.WORKING)
    content = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=200)
    version = models.CharField(max_length=16)
    tier = models.CharField(max_length=12)
    region = models.CharField(max_length=64, blank=True, default="")
    sentences = models.JSONField(default=list)  # [{"text", "pages": [1, ...], "matched"}]
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.CharField(max_length=500, blank=True, default="")
    asked_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "files_summary"


class SummarySection(models.Model):
    """The summary of a part of a file (level 0), or of summaries (above). Without text until it is made.

    `digest` names what it was made of, by what; `pages` are those whose text the model was given.
    """

    file = models.ForeignKey("files.File", on_delete=models.CASCADE, related_name="summary_sections", db_index=False)
    organization_id = models.UUIDField()
    level = models.SmallIntegerField()
    ordinal = models.IntegerField()
    title = models.TextField(blank=True, default="")
    first_page = models.IntegerField()
    last_page = models.IntegerField()
    pages = ArrayField(models.IntegerField(), default=list)
    digest = models.CharField(max_length=64)
    text = models.TextField(blank=True, default="")

    class Meta:
        db_table = "files_summary_section"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "level", "ordinal"], name="files_summary_section_once")
        ]
