"""Shapes of the files API: input checks, and the output the schema promises."""

from __future__ import annotations

from typing import Any, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.files.extraction.tabular.types import ColumnType
from apps.files.models import FileState, PageState, Searchable, StageName, SummaryState
from apps.files.types import KINDS

MAX_PARTS = 1_000


class FileErrorSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class FileSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    size = serializers.IntegerField()
    content_type = serializers.CharField()
    kind = serializers.ChoiceField(KINDS)
    state = serializers.ChoiceField(FileState.values)
    stage = serializers.ChoiceField(StageName.values, allow_null=True)
    page_count = serializers.IntegerField(allow_null=True)
    pages_ready = serializers.IntegerField()
    pages_failed = serializers.ListField(child=serializers.IntegerField())
    searchable = serializers.ChoiceField(Searchable.values)
    error = FileErrorSerializer(allow_null=True)
    scanner = serializers.ChoiceField(
        ["clamd", "signatures"], allow_null=True, help_text="Who looked for malware; null until that was done."
    )
    notices = FileErrorSerializer(many=True, help_text="What was left out of a file that could be read.")
    created_at = serializers.DateTimeField()
    seconds_left = serializers.IntegerField(
        allow_null=True,
        help_text="How long reading will take still; null while that is not known, and when it is done.",
    )


class FilePageSerializer(serializers.Serializer[Any]):
    results = FileSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class NewFileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=1_000, trim_whitespace=True)
    size = serializers.IntegerField(min_value=0, max_value=1 << 53)
    content_type = serializers.CharField(max_length=255, required=False, allow_blank=True, default="")


class PartTargetSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    url = serializers.CharField(help_text="PUT exactly `size` bytes here; keep the ETag of the answer.")
    size = serializers.IntegerField()


class ReceivedPartSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    etag = serializers.CharField()
    size = serializers.IntegerField()


class UploadSerializer(serializers.Serializer[Any]):
    part_size = serializers.IntegerField()
    parts = PartTargetSerializer(many=True)
    expires_at = serializers.DateTimeField(help_text="When the addresses expire; ask again for new ones.")
    received = ReceivedPartSerializer(many=True)


class StartedUploadSerializer(serializers.Serializer[Any]):
    file = FileSerializer()
    upload = UploadSerializer()


class SentPartSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1, max_value=10_000)
    etag = serializers.CharField(max_length=80)


class PasswordSerializer(serializers.Serializer[Any]):
    password = serializers.CharField(max_length=1_000, trim_whitespace=False)


class CompleteSerializer(serializers.Serializer[Any]):
    parts = serializers.ListField(child=SentPartSerializer(), min_length=1, max_length=MAX_PARTS)


class TableColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="What SQL calls the column.")
    label = serializers.CharField(help_text="What the header says.")  # type: ignore[assignment]
    type = serializers.ChoiceField(get_args(ColumnType))
    empty = serializers.IntegerField()
    distinct = serializers.IntegerField(help_text="How many different values, about.")
    least = serializers.CharField()
    most = serializers.CharField()
    samples = serializers.ListField(child=serializers.CharField())
    unit = serializers.CharField(help_text="A sign that was written with each number, such as $ or %.")
    raw = serializers.CharField(help_text="The text column with each cell as written, where some are of another type.")
    unread = serializers.IntegerField(help_text="Cells that are of another type and empty in this column.")


class TableSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    name = serializers.CharField(help_text="What SQL calls the table.")
    sheet = serializers.CharField()
    title = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    header_row = serializers.IntegerField(allow_null=True)
    first_row = serializers.IntegerField(help_text="Of its data, in the sheet, from 1.")
    last_row = serializers.IntegerField()
    first_column = serializers.IntegerField()
    last_column = serializers.IntegerField()
    rows = serializers.IntegerField()
    columns = TableColumnSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class TableListSerializer(serializers.Serializer[Any]):
    results = TableSerializer(many=True)


class TableQuestionSerializer(serializers.Serializer[Any]):
    sql = serializers.CharField(max_length=10_000, help_text="One SELECT over the file's tables, in DuckDB's dialect.")


class TableAnswerColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField()


class TableAnswerSourceSerializer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    file_name = serializers.CharField()
    number = serializers.IntegerField()
    name = serializers.CharField()
    place = serializers.CharField()


@extend_schema_field({"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}})
class CellsField(serializers.ListField):
    """The cells of a row. Numbers that JSON's readers would round are text."""


class TableAnswerSerializer(serializers.Serializer[Any]):
    columns = TableAnswerColumnSerializer(many=True)
    rows = serializers.ListField(child=CellsField())
    row_numbers = serializers.ListField(
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="Each row's number in the sheet, where the rows are rows of the first source.",
    )
    truncated = serializers.BooleanField(help_text="There are more rows, or longer cells.")
    sql = serializers.CharField(help_text="What was run.")
    sources = TableAnswerSourceSerializer(many=True)


class PageSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.ChoiceField(PageState.values)
    source = serializers.ChoiceField(["digital", "ocr"], allow_null=True)  # type: ignore[assignment]
    width = serializers.FloatField(allow_null=True)
    height = serializers.FloatField(allow_null=True)
    error = FileErrorSerializer(allow_null=True)


class PageListSerializer(serializers.Serializer[Any]):
    results = PageSerializer(many=True)


class PageTextSerializer(PageSerializer):
    text = serializers.CharField()
    language = serializers.CharField(
        allow_null=True, help_text="That of most of its text (ISO 639-1), if it can be told."
    )
    row_numbers = serializers.ListField(
        child=serializers.IntegerField(allow_null=True),
        allow_null=True,
        help_text="Of a sheet: for each line of the text the number of its row; null where it is none.",
    )


class ReceiptSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    bytes = serializers.IntegerField()
    deleted_at = serializers.DateTimeField()
    purged_at = serializers.DateTimeField(help_text="When nothing was left.")
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="How much was removed, by store.")
    signature = serializers.CharField(help_text="By the key of this installation.")


class KeptFilesSerializer(serializers.Serializer[Any]):
    files = serializers.IntegerField()
    bytes = serializers.IntegerField()
    files_at_most = serializers.IntegerField(allow_null=True)
    bytes_at_most = serializers.IntegerField(allow_null=True)


class FileUsageSerializer(serializers.Serializer[Any]):
    mine = KeptFilesSerializer()
    organization = KeptFilesSerializer()


class SummarySectionSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    first_page = serializers.IntegerField()
    last_page = serializers.IntegerField()
    pages_given = serializers.IntegerField(help_text="Pages whose text the model was given.")
    text = serializers.CharField(allow_null=True, help_text="Null until it is made.")


class SummarySentenceSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    pages = serializers.ListField(child=serializers.IntegerField())
    matched = serializers.BooleanField(help_text="The pages were found by the sentence's words; it named none.")


class SummarySerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(["none", *SummaryState.values])
    model = serializers.CharField(allow_null=True)
    waiting = serializers.BooleanField(help_text="No model has time for it at this moment.")
    outdated = serializers.BooleanField(help_text="The file was read further after the summary was made.")
    steps = serializers.IntegerField(help_text="Requests to the model, as far as they are known.")
    steps_done = serializers.IntegerField()
    sections = SummarySectionSerializer(many=True)
    sentences = SummarySentenceSerializer(many=True)
    pages_covered = serializers.IntegerField()
    page_count = serializers.IntegerField()
    error = FileErrorSerializer(allow_null=True)
