"""Rows of conversations, their message trees and their runs.

Messages are hash-partitioned by conversation (migration 0001), so their key starts with it and every query
names it. A run row is the truth about a run: its state, who owns it, and the checkpoint of its answer.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from pgvector.django import VectorField

from apps.accounts.models import Organization
from apps.conversations.types import ACTIVE, Lane, RunState
from apps.core.ids import new_id

STATES = [(state.value, state.value) for state in RunState]
LANES = [(lane.value, lane.value) for lane in Lane]


class Conversation(models.Model):
    class Origin(models.TextChoices):
        CHAT = "chat"
        API = "api"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    origin = models.CharField(max_length=8, choices=Origin, default=Origin.CHAT)
    title = models.CharField(max_length=200, default="")
    title_by = models.CharField(max_length=8, default="")  # "question", "model" or "person"
    pinned_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    last_seq = models.PositiveIntegerField(default=0)
    head_message_id = models.UUIDField(null=True)
    # Null for none, as for a run: the rows of API calls stay out of the constraint's index.
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001
    request_digest = models.CharField(max_length=64, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["organization", "owner", "idempotency_key"],
                name="conversation_idempotency",
                condition=Q(idempotency_key__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["organization", "owner", "-updated_at", "-id"],
                name="conversation_list",
                condition=Q(origin="chat"),
            ),
            models.Index(fields=["deleted_at"], name="conversation_deleted", condition=Q(deleted_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Message(models.Model):
    pk = models.CompositePrimaryKey("conversation_id", "id")
    id = models.UUIDField(default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False)
    organization_id = models.UUIDField()
    seq = models.PositiveIntegerField()
    parent_id = models.UUIDField(null=True)
    role = models.CharField(max_length=9)  # "user" or "assistant"
    status = models.CharField(max_length=16, choices=STATES, default=RunState.COMPLETED.value)
    text = models.TextField(default="")
    client_id = models.UUIDField(null=True)
    run_id = models.UUIDField(null=True)
    model = models.CharField(max_length=200, default="")
    file_ids = ArrayField(models.UUIDField(), default=list)
    citations = models.JSONField(default=list)
    # What a reader of the run was told besides the text, in order: lost replicas, incomplete searches.
    notices = models.JSONField(default=list, db_default=[])
    # What a caller of /v1 is to do, in OpenAI's form: {"id", "type", "function": {"name", "arguments"}} each.
    tool_calls = models.JSONField(default=list, db_default=[])
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="message_seq"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="message_client_id"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Runner(models.Model):
    """A runner process and its lease. Every run it owns lives as long as this one row is renewed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    lease_until = models.DateTimeField(db_index=True)
    started_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    question_id = models.UUIDField(null=True)
    answer_id = models.UUIDField()

    state = models.CharField(max_length=16, choices=STATES, default=RunState.QUEUED.value)
    transitions = models.JSONField(default=list)  # [{"state", "at", "attempt", "by"}], appended by every change
    lane = models.CharField(max_length=12, choices=LANES, default=Lane.INTERACTIVE.value)
    tier = models.CharField(max_length=12)
    priority = models.SmallIntegerField(default=0)
    deadline_at = models.DateTimeField()

    # Null for none: the constraint lets any number of runs have no key.
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001
    request_digest = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64, default="")
    model_requested = models.CharField(max_length=200)
    params = models.JSONField(default=dict)
    prompt = models.JSONField(null=True)  # the messages of an API call; null when the conversation is the prompt

    owner_id = models.UUIDField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)

    # Checkpoint of the unfinished answer.
    partial_text = models.TextField(default="")
    token_ids = ArrayField(models.IntegerField(), default=list)
    prompt_token_ids = ArrayField(models.IntegerField(), default=list)
    seq = models.PositiveIntegerField(default=0)
    weights_digest = models.CharField(max_length=64, default="", db_default="")  # of who wrote it, as the tokenizer's
    tokenizer_digest = models.CharField(max_length=64, default="", db_default="")
    dispatched = models.PositiveIntegerField(default=0, db_default=0)  # tools that were started for it
    context = models.JSONField(
        null=True
    )  # {"messages": [...], "passages": [...], "mode", "unready"}: exactly what was sent

    model = models.CharField(max_length=200, default="")
    replica = models.CharField(max_length=200, default="")
    finish_reason = models.CharField(max_length=16, default="")
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    # From the claim: until a replica had a place, and until its first token.
    waited_ms = models.PositiveIntegerField(null=True)
    ttft_ms = models.PositiveIntegerField(null=True)
    decision = models.JSONField(null=True)  # which model and replica, and why: {"model", "reasons": [...], ...}
    reconstructed = models.JSONField(default=list)
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "idempotency_key"], name="run_idempotency"),
            models.UniqueConstraint(
                fields=["answer_id"], name="run_one_active_an_answer", condition=Q(state__in=[s.value for s in ACTIVE])
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["state", "created_at"], name="run_active", condition=Q(state__in=["queued", "running"])
            ),
            models.Index(fields=["organization", "user", "-created_at"], name="run_recent"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class TurnIndex(models.Model):
    """A message of a long conversation as it is searched: made from the message, gone with the conversation.

    `length` counts its lexemes, which are `TurnPosting`s. The vector is made later, or never.
    """

    pk = models.CompositePrimaryKey("conversation_id", "message_id")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+", db_index=False)
    message_id = models.UUIDField()
    length = models.IntegerField()
    embedding = VectorField(null=True)
    embedding_version = models.CharField(max_length=64, default="", db_default="")


class TurnPosting(models.Model):
    """One lexeme of one message and how often it occurs there. Without foreign keys: they would cost a check a row."""

    pk = models.CompositePrimaryKey("conversation_id", "lexeme", "message_id")
    conversation_id = models.UUIDField()
    message_id = models.UUIDField()
    lexeme = models.CharField(max_length=64)
    tf = models.SmallIntegerField()


class BranchSummary(models.Model):
    """A summary of a branch from its root to `message_id`, which names that branch: an edit makes another message.

    `turns` counts the messages that it is of. Never in place of them: they stay, and are searched.
    """

    pk = models.CompositePrimaryKey("conversation_id", "message_id")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+", db_index=False)
    message_id = models.UUIDField()
    turns = models.PositiveIntegerField()
    text = models.TextField()
    model = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
