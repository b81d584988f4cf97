"""Rows of files: the upload, the state of each stage, pages, passages and their keyword postings.

Everything below a `File` can be derived again from its object. Derived rows carry the organization's id, so
that each hot query starts from it, and are written in bulk: no signals, no cascades, no save() tricks.
Deleting leaves the `File` row as a tombstone (the conversations that mention it keep their reference);
`services.purge` removes all the rest.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import VectorField

from apps.core.ids import new_id
from apps.files.models.tables import Table as Table


class FileState(models.TextChoices):
    UPLOADING = "uploading"
    PROCESSING = "processing"
    READY = "ready"
    PARTIAL = "partial"  # some pages could not be read; the others answer
    NEEDS_PASSWORD = "needs_password"  # noqa: S105 - a state
    FAILED = "failed"
    DELETED = "deleted"


ENDED = (FileState.DELETED, FileState.FAILED, FileState.NEEDS_PASSWORD)
"""Nobody works on a file in these states."""


class StageName(models.TextChoices):
    UPLOAD = "upload"
    VERIFY = "verify"
    PARSE = "parse"
    OCR = "ocr"
    INDEX = "index"
    EMBED = "embed"
    SUMMARY = "summary"  # only when somebody asks for one


class StageState(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class PageState(models.TextChoices):
    PENDING = "pending"
    READY = "ready"
    OCR = "ocr"  # waits for recognition, as a whole or for pictures on it; its own text may be indexed
    FAILED = "failed"


class Searchable(models.TextChoices):
    NONE = "none"
    KEYWORD = "keyword"
    HYBRID = "hybrid"


class File(models.Model):
    """One upload of one owner. `pages_ready` and `pages_failed` are recomputed from the pages, never counted up."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        "accounts.Organization",
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    content_type = models.CharField(max_length=255)
    kind = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=FileState, default=FileState.UPLOADING)
    stage = models.CharField(max_length=16, choices=StageName, blank=True, default=StageName.UPLOAD)
    page_count = models.IntegerField(null=True)
    pages_ready = models.IntegerField(default=0)
    pages_failed = ArrayField(models.IntegerField(), default=list)
    searchable = models.CharField(max_length=8, choices=Searchable, default=Searchable.NONE)
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.CharField(max_length=500, blank=True, default="")
    scanner = models.CharField(max_length=16, blank=True, default="")
    # Hash of the content, compared only with the same owner's files; `same_as` is the earlier file whose
    # derived rows this one copies instead of parsing again.
    sha256 = models.CharField(max_length=64, blank=True, default="")
    same_as_id = models.UUIDField(null=True)
    object_key = models.CharField(max_length=200)
    # The copy without protection that is read instead, once its owner gave the password; beside the original.
    unlocked_key = models.CharField(max_length=200, blank=True, default="")
    notices = ArrayField(models.CharField(max_length=32), default=list)  # what was left out: extraction.Notice
    upload_ref = models.CharField(max_length=500, blank=True, default="")
    upload_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    # When it was last given to be read, and when its first page and all of it could be searched (`freshness`).
    uploaded_at = models.DateTimeField(null=True)
    first_searchable_at = models.DateTimeField(null=True)
    searchable_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    purged_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "files_file"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organization", "owner", "-id"], name="files_owner"),
            models.Index(
                fields=["organization", "owner", "sha256"],
                name="files_owner_content",
                condition=~models.Q(sha256="") & models.Q(deleted_at=None),
            ),
            models.Index(
                fields=["upload_expires_at"],
                name="files_uploading",
                condition=models.Q(state=FileState.UPLOADING),
            ),
            models.Index(
                fields=["deleted_at"],
                name="files_unpurged",
                condition=models.Q(purged_at=None, state=FileState.DELETED),
            ),
            models.Index(
                fields=["-searchable_at"],
                name="files_searchable",
                condition=models.Q(searchable_at__isnull=False),
            ),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=models.Q(size__gte=0), name="files_size_positive"),
            models.CheckConstraint(
                condition=models.Q(state=FileState.DELETED, deleted_at__isnull=False)
                | (~models.Q(state=FileState.DELETED) & models.Q(deleted_at=None)),
                name="files_deleted_has_time",
            ),
        ]

    @property
    def readable_key(self) -> str:
        return self.unlocked_key or self.object_key


class UploadPart(models.Model):
    """One part of an upload: its planned size, and the tag that storage gave it once it was received."""

    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="parts", db_index=False)
    organization_id = models.UUIDField()
    number = models.IntegerField()
    size = models.BigIntegerField()
    etag = models.CharField(max_length=80, blank=True, default="")

    class Meta:
        db_table = "files_upload_part"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "number"], name="files_part_once")
        ]


class FileStage(models.Model):
    """The truth about one stage of one file; a queue's message is only a hint to look here.

    `attempt` is the fencing token of whoever holds the lease: a worker whose attempt is no longer this one
    may write nothing. A `pending` stage is due at `due_at`; a `running` one is stale after `lease_until`.
    `hinted_at` is when a message was last sent for it, so that a sweeper does not send one each time it looks.
    """

    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="stages", db_index=False)
    organization_id = models.UUIDField()
    name = models.CharField(max_length=16, choices=StageName)
    state = models.CharField(max_length=16, choices=StageState, default=StageState.PENDING)
    attempt = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    hinted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        db_table = "files_stage"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "name"], name="files_stage_once")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["due_at"],
                name="files_stage_due",
                condition=models.Q(state=StageState.PENDING),
            ),
            models.Index(
                fields=["lease_until"],
                name="files_stage_lease",
                condition=models.Q(state=StageState.RUNNING),
            ),
        ]


class Page(models.Model):
    """One page as it was read. It exists once its content is known; the pages before that are `pending`.

    `elements` is `[{"category", "text", "box"?, "level"?, "lines"?, "language"?, "locator"?, "rows"?, "picture"?}]`
    (`extraction.types.Element.as_json`), boxes as fractions of the page; `headings` is the path `[[level, text]]` in
    force where the page begins.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="pages", db_index=False)
    organization_id = models.UUIDField()
    number = models.IntegerField()
    state = models.CharField(max_length=8, choices=PageState, default=PageState.PENDING)
    source = models.CharField(max_length=8, blank=True, default="")  # "digital" or "ocr"
    text = models.TextField(blank=True, default="")
    width = models.FloatField(null=True)
    height = models.FloatField(null=True)
    elements = models.JSONField(default=list)
    headings = models.JSONField(default=list)
    confidence = models.FloatField(null=True)
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.CharField(max_length=500, blank=True, default="")
    indexed_at = models.DateTimeField(null=True)
    # Recognition is claimed page by page; the same meaning as in FileStage.
    attempt = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "files_page"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "number"], name="files_page_once")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["lease_until"],
                name="files_page_ocr",
                condition=models.Q(state=PageState.OCR),
            ),
        ]


class Passage(models.Model):
    """A stretch of one page that retrieval can return. `length` counts its indexed lexemes (BM25's |d|). `locator`
    (`types.Locator`) is null where the page says all, and for passages of before it was kept.

    The vector is filled after the keyword index; how many numbers it has depends on what made it (`VectorVersion`).
    Large scopes search the half-precision HNSW index of their dimension (`indexing.nearest`), small scopes are
    scanned exactly on `embedding`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization_id = models.UUIDField()
    owner_id = models.UUIDField()
    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="passages", db_index=False)
    page_number = models.IntegerField()
    ordinal = models.IntegerField()
    heading = models.TextField(blank=True, default="")
    text = models.TextField()
    boxes = models.JSONField(default=list)
    locator = models.JSONField(null=True)
    source = models.CharField(max_length=8)
    token_count = models.IntegerField()
    length = models.IntegerField()
    embedding = VectorField(null=True)
    embedding_version = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        db_table = "files_passage"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "page_number", "ordinal"], name="files_passage_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["organization_id", "owner_id", "file"],
                include=["id", "length"],
                name="files_passage_scope",
            ),
            models.Index(
                fields=["file"],
                name="files_passage_unembedded",
                condition=models.Q(embedding=None),
            ),
            models.Index(
                fields=["embedding_version", "file"],
                name="files_passage_version",
                condition=models.Q(embedding_version__gt=""),
            ),
        ]


class Posting(models.Model):
    """One lexeme of one passage and how often it occurs there.

    No foreign keys: they would cost a check a row on the largest table. The key starts with the file, so a
    file's postings are removed, and looked for after a removal, without the passages.
    """

    pk = models.CompositePrimaryKey("file_id", "passage_id", "lexeme")
    organization_id = models.UUIDField()
    file_id = models.UUIDField()
    passage = models.ForeignKey(
        Passage,
        on_delete=models.DO_NOTHING,
        related_name="postings",
        db_constraint=False,
        db_index=False,
    )
    lexeme = models.CharField(max_length=64)
    tf = models.SmallIntegerField()

    class Meta:
        db_table = "files_posting"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["organization_id", "lexeme", "file_id"],
                include=["passage", "tf"],
                name="files_posting_lookup",
            ),
        ]
