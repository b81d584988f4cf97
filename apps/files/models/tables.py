"""Rows of tables that were found in files."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.core.ids import new_id


class Table(models.Model):
    """A table found in a file, whose rows are Parquet in object storage (`pipeline.tabling.key`).

    Numbers of rows and columns are those of its sheet, from 1; `sheet` is empty for delimited text. `columns` is
    `[{"name", "label", "type", ...}]` (`extraction.tabular.types.TableColumn`). `page` is set for one of a document.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization_id = models.UUIDField()
    file = models.ForeignKey("files.File", on_delete=models.CASCADE, related_name="tables", db_index=False)
    number = models.IntegerField()
    name = models.CharField(max_length=63)
    sheet = models.CharField(max_length=255, blank=True, default="")
    title = models.CharField(max_length=255, blank=True, default="")
    page = models.IntegerField(null=True)
    header_row = models.IntegerField(null=True)
    first_row = models.IntegerField()
    last_row = models.IntegerField()
    first_column = models.IntegerField()
    last_column = models.IntegerField()
    rows = models.BigIntegerField()
    size = models.BigIntegerField()
    columns = models.JSONField(default=list)
    notes = models.JSONField(default=list)

    class Meta:
        db_table = "files_table"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "number"], name="files_table_once")
        ]
