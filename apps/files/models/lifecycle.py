"""Rows of what happens to files besides being read: versions of vectors, places outside, receipts of deletions."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.core.ids import new_id


class VectorVersion(models.Model):
    """Something that made vectors of this installation. Vectors of versions that are not retired answer questions.

    The version that the settings name was `chosen_at` last; the others are served until nothing of theirs is left.
    """

    version = models.CharField(primary_key=True, max_length=64)
    dimensions = models.SmallIntegerField(null=True)  # unknown until the first vector
    chosen_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "files_vector_version"

    def __str__(self) -> str:
        return self.version


class Sync(models.Model):
    """A place outside whose files are kept in step with an owner's (`connectors`). `cursor` is the place's own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization_id = models.UUIDField()
    owner_id = models.UUIDField()
    kind = models.CharField(max_length=16)
    location = models.CharField(max_length=1_000)
    cursor = models.CharField(max_length=1_000, default="")
    synced_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, default="")

    class Meta:
        db_table = "files_sync"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organization_id", "owner_id", "kind", "location"], name="files_sync_once")
        ]


class SyncItem(models.Model):
    """One item of a place: which version the file `current_id` holds, and which is being read as `pending_id`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    sync = models.ForeignKey(Sync, on_delete=models.CASCADE, related_name="items", db_index=False)
    organization_id = models.UUIDField()
    external_id = models.CharField(max_length=1_000)
    version = models.CharField(max_length=200, default="")
    current_id = models.UUIDField(null=True)
    pending_version = models.CharField(max_length=200, default="")
    pending_id = models.UUIDField(null=True)
    error = models.CharField(max_length=500, default="")

    class Meta:
        db_table = "files_sync_item"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["sync", "external_id"], name="files_sync_item_once")
        ]


class DeletionReceipt(models.Model):
    """What the removal of a file removed, by store. Its id is the file's; `signature` is set when nothing is left."""

    id = models.UUIDField(primary_key=True, editable=False)
    organization_id = models.UUIDField()
    owner_id = models.UUIDField()
    bytes = models.BigIntegerField()
    deleted_at = models.DateTimeField()
    purged_at = models.DateTimeField(null=True)
    removed = models.JSONField(default=dict)
    signature = models.CharField(max_length=100, default="")

    class Meta:
        db_table = "files_deletion_receipt"
