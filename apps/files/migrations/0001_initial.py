"""Files, their stages, pages, passages and postings; needs pgvector."""

import apps.core.ids
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.comparison
import pgvector.django
import pgvector.django.halfvec
import pgvector.django.indexes
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        pgvector.django.VectorExtension(),
        migrations.CreateModel(
            name="File",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("size", models.BigIntegerField()),
                ("content_type", models.CharField(max_length=255)),
                ("kind", models.CharField(max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploading", "Uploading"),
                            ("processing", "Processing"),
                            ("ready", "Ready"),
                            ("partial", "Partial"),
                            ("failed", "Failed"),
                            ("deleted", "Deleted"),
                        ],
                        default="uploading",
                        max_length=16,
                    ),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("upload", "Upload"),
                            ("verify", "Verify"),
                            ("parse", "Parse"),
                            ("ocr", "Ocr"),
                            ("index", "Index"),
                            ("embed", "Embed"),
                        ],
                        default="upload",
                        max_length=16,
                        blank=True,
                    ),
                ),
                ("page_count", models.IntegerField(null=True)),
                ("pages_ready", models.IntegerField(default=0)),
                (
                    "pages_failed",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                (
                    "searchable",
                    models.CharField(
                        choices=[
                            ("none", "None"),
                            ("keyword", "Keyword"),
                            ("hybrid", "Hybrid"),
                        ],
                        default="none",
                        max_length=8,
                    ),
                ),
                ("error_code", models.CharField(blank=True, default="", max_length=40)),
                (
                    "error_message",
                    models.CharField(blank=True, default="", max_length=500),
                ),
                ("scanner", models.CharField(blank=True, default="", max_length=16)),
                ("sha256", models.CharField(blank=True, default="", max_length=64)),
                ("same_as_id", models.UUIDField(null=True)),
                ("object_key", models.CharField(max_length=200)),
                (
                    "upload_ref",
                    models.CharField(blank=True, default="", max_length=500),
                ),
                ("upload_expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("purged_at", models.DateTimeField(null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.organization",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "files_file",
            },
        ),
        migrations.CreateModel(
            name="FileStage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("organization_id", models.UUIDField()),
                (
                    "name",
                    models.CharField(
                        choices=[
                            ("upload", "Upload"),
                            ("verify", "Verify"),
                            ("parse", "Parse"),
                            ("ocr", "Ocr"),
                            ("index", "Index"),
                            ("embed", "Embed"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("attempt", models.IntegerField(default=0)),
                ("failures", models.IntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("hinted_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("error_code", models.CharField(blank=True, default="", max_length=40)),
                (
                    "error_message",
                    models.CharField(blank=True, default="", max_length=500),
                ),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stages",
                        to="files.file",
                    ),
                ),
            ],
            options={
                "db_table": "files_stage",
            },
        ),
        migrations.CreateModel(
            name="Page",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.UUIDField()),
                ("number", models.IntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("ready", "Ready"),
                            ("ocr", "Ocr"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("source", models.CharField(blank=True, default="", max_length=8)),
                ("text", models.TextField(blank=True, default="")),
                ("width", models.FloatField(null=True)),
                ("height", models.FloatField(null=True)),
                ("elements", models.JSONField(default=list)),
                ("headings", models.JSONField(default=list)),
                ("confidence", models.FloatField(null=True)),
                ("error_code", models.CharField(blank=True, default="", max_length=40)),
                (
                    "error_message",
                    models.CharField(blank=True, default="", max_length=500),
                ),
                ("indexed_at", models.DateTimeField(null=True)),
                ("attempt", models.IntegerField(default=0)),
                ("failures", models.IntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pages",
                        to="files.file",
                    ),
                ),
            ],
            options={
                "db_table": "files_page",
            },
        ),
        migrations.CreateModel(
            name="Passage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.UUIDField()),
                ("owner_id", models.UUIDField()),
                ("page_number", models.IntegerField()),
                ("ordinal", models.IntegerField()),
                ("heading", models.TextField(blank=True, default="")),
                ("text", models.TextField()),
                ("boxes", models.JSONField(default=list)),
                ("source", models.CharField(max_length=8)),
                ("token_count", models.IntegerField()),
                ("length", models.IntegerField()),
                (
                    "embedding",
                    pgvector.django.vector.VectorField(dimensions=384, null=True),
                ),
                (
                    "embedding_version",
                    models.CharField(blank=True, default="", max_length=64),
                ),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passages",
                        to="files.file",
                    ),
                ),
            ],
            options={
                "db_table": "files_passage",
            },
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "file_id",
                        "passage_id",
                        "lexeme",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.UUIDField()),
                ("file_id", models.UUIDField()),
                ("lexeme", models.CharField(max_length=64)),
                ("tf", models.SmallIntegerField()),
                (
                    "passage",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="postings",
                        to="files.passage",
                    ),
                ),
            ],
            options={
                "db_table": "files_posting",
            },
        ),
        migrations.CreateModel(
            name="UploadPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("organization_id", models.UUIDField()),
                ("number", models.IntegerField()),
                ("size", models.BigIntegerField()),
                ("etag", models.CharField(blank=True, default="", max_length=80)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="files.file",
                    ),
                ),
            ],
            options={
                "db_table": "files_upload_part",
            },
        ),
        migrations.AddIndex(
            model_name="file",
            index=models.Index(fields=["organization", "owner", "-id"], name="files_owner"),
        ),
        migrations.AddIndex(
            model_name="file",
            index=models.Index(
                condition=models.Q(models.Q(("sha256", ""), _negated=True), ("deleted_at", None)),
                fields=["organization", "owner", "sha256"],
                name="files_owner_content",
            ),
        ),
        migrations.AddIndex(
            model_name="file",
            index=models.Index(
                condition=models.Q(("state", "uploading")),
                fields=["upload_expires_at"],
                name="files_uploading",
            ),
        ),
        migrations.AddIndex(
            model_name="file",
            index=models.Index(
                condition=models.Q(("purged_at", None), ("state", "deleted")),
                fields=["deleted_at"],
                name="files_unpurged",
            ),
        ),
        migrations.AddConstraint(
            model_name="file",
            constraint=models.CheckConstraint(condition=models.Q(("size__gte", 0)), name="files_size_positive"),
        ),
        migrations.AddConstraint(
            model_name="file",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("deleted_at__isnull", False), ("state", "deleted")),
                    models.Q(
                        models.Q(("state", "deleted"), _negated=True),
                        ("deleted_at", None),
                    ),
                    _connector="OR",
                ),
                name="files_deleted_has_time",
            ),
        ),
        migrations.AddIndex(
            model_name="filestage",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["due_at"],
                name="files_stage_due",
            ),
        ),
        migrations.AddIndex(
            model_name="filestage",
            index=models.Index(
                condition=models.Q(("state", "running")),
                fields=["lease_until"],
                name="files_stage_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="filestage",
            constraint=models.UniqueConstraint(fields=("file", "name"), name="files_stage_once"),
        ),
        migrations.AddIndex(
            model_name="page",
            index=models.Index(
                condition=models.Q(("state", "ocr")),
                fields=["lease_until"],
                name="files_page_ocr",
            ),
        ),
        migrations.AddConstraint(
            model_name="page",
            constraint=models.UniqueConstraint(fields=("file", "number"), name="files_page_once"),
        ),
        migrations.AddIndex(
            model_name="passage",
            index=models.Index(
                fields=["organization_id", "owner_id", "file"],
                include=["id", "length"],
                name="files_passage_scope",
            ),
        ),
        migrations.AddIndex(
            model_name="passage",
            index=models.Index(
                condition=models.Q(("embedding", None)),
                fields=["file"],
                name="files_passage_unembedded",
            ),
        ),
        migrations.AddIndex(
            model_name="passage",
            index=pgvector.django.indexes.HnswIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.comparison.Cast(
                        "embedding",
                        pgvector.django.halfvec.HalfVectorField(dimensions=384),
                    ),
                    name="halfvec_cosine_ops",
                ),
                ef_construction=64,
                m=16,
                name="files_passage_hnsw",
            ),
        ),
        migrations.AddConstraint(
            model_name="passage",
            constraint=models.UniqueConstraint(fields=("file", "page_number", "ordinal"), name="files_passage_once"),
        ),
        migrations.AddIndex(
            model_name="posting",
            index=models.Index(
                fields=["organization_id", "lexeme", "file_id"],
                include=("passage", "tf"),
                name="files_posting_lookup",
            ),
        ),
        migrations.AddConstraint(
            model_name="uploadpart",
            constraint=models.UniqueConstraint(fields=("file", "number"), name="files_part_once"),
        ),
    ]
