"""Conversations, hash-partitioned messages, runs and runners."""

import apps.core.ids
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

PARTITIONS = 16
CREATE_MESSAGES = """
CREATE TABLE conversations_message (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    seq integer NOT NULL CHECK (seq >= 0),
    parent_id uuid,
    role varchar(9) NOT NULL,
    status varchar(16) NOT NULL,
    text text NOT NULL,
    client_id uuid,
    run_id uuid,
    model varchar(200) NOT NULL,
    file_ids uuid[] NOT NULL,
    citations jsonb NOT NULL,
    error jsonb,
    created_at timestamptz NOT NULL,
    finished_at timestamptz,
    conversation_id uuid NOT NULL REFERENCES conversations_conversation (id) DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (conversation_id, id)
) PARTITION BY HASH (conversation_id);
""" + "".join(
    f"CREATE TABLE conversations_message_{n} PARTITION OF conversations_message"
    f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n});\n"
    for n in range(PARTITIONS)
)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0002_append_only_ledger'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Runner',
            fields=[
                ('id', models.UUIDField(default=apps.core.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=200)),
                ('pid', models.PositiveIntegerField()),
                ('lease_until', models.DateTimeField(db_index=True)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.UUIDField(default=apps.core.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('origin', models.CharField(choices=[('chat', 'Chat'), ('api', 'Api')], default='chat', max_length=8)),
                ('title', models.CharField(default='', max_length=200)),
                ('title_by', models.CharField(default='', max_length=8)),
                ('pinned_at', models.DateTimeField(null=True)),
                ('archived_at', models.DateTimeField(null=True)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('last_seq', models.PositiveIntegerField(default=0)),
                ('head_message_id', models.UUIDField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField()),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CREATE_MESSAGES, "DROP TABLE conversations_message")],
            state_operations=[
                migrations.CreateModel(
                    name='Message',
                    fields=[
                        ('pk', models.CompositePrimaryKey('conversation_id', 'id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('id', models.UUIDField(default=apps.core.ids.new_id, editable=False)),
                        ('organization_id', models.UUIDField()),
                        ('seq', models.PositiveIntegerField()),
                        ('parent_id', models.UUIDField(null=True)),
                        ('role', models.CharField(max_length=9)),
                        ('status', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('waiting_approval', 'waiting_approval'), ('completed', 'completed'), ('incomplete', 'incomplete'), ('cancelled', 'cancelled'), ('failed', 'failed')], default='completed', max_length=16)),
                        ('text', models.TextField(default='')),
                        ('client_id', models.UUIDField(null=True)),
                        ('run_id', models.UUIDField(null=True)),
                        ('model', models.CharField(default='', max_length=200)),
                        ('file_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                        ('citations', models.JSONField(default=list)),
                        ('error', models.JSONField(null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('finished_at', models.DateTimeField(null=True)),
                        ('conversation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='conversations.conversation')),
                    ],
                ),
            ],
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=apps.core.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('question_id', models.UUIDField(null=True)),
                ('answer_id', models.UUIDField()),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('waiting_approval', 'waiting_approval'), ('completed', 'completed'), ('incomplete', 'incomplete'), ('cancelled', 'cancelled'), ('failed', 'failed')], default='queued', max_length=16)),
                ('transitions', models.JSONField(default=list)),
                ('lane', models.CharField(choices=[('interactive', 'interactive'), ('batch', 'batch')], default='interactive', max_length=12)),
                ('tier', models.CharField(max_length=12)),
                ('priority', models.SmallIntegerField(default=0)),
                ('deadline_at', models.DateTimeField()),
                ('idempotency_key', models.CharField(max_length=200, null=True)),
                ('request_digest', models.CharField(max_length=64)),
                ('request_id', models.CharField(default='', max_length=64)),
                ('model_requested', models.CharField(max_length=200)),
                ('params', models.JSONField(default=dict)),
                ('prompt', models.JSONField(null=True)),
                ('owner_id', models.UUIDField(null=True)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('cancel_requested_at', models.DateTimeField(null=True)),
                ('partial_text', models.TextField(default='')),
                ('token_ids', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, size=None)),
                ('prompt_token_ids', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, size=None)),
                ('seq', models.PositiveIntegerField(default=0)),
                ('context', models.JSONField(null=True)),
                ('model', models.CharField(default='', max_length=200)),
                ('replica', models.CharField(default='', max_length=200)),
                ('finish_reason', models.CharField(default='', max_length=16)),
                ('prompt_tokens', models.PositiveIntegerField(default=0)),
                ('cached_tokens', models.PositiveIntegerField(default=0)),
                ('completion_tokens', models.PositiveIntegerField(default=0)),
                ('ttft_ms', models.PositiveIntegerField(null=True)),
                ('reconstructed', models.JSONField(default=list)),
                ('error', models.JSONField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='conversations.conversation')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organization')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('origin', 'chat')), fields=['organization', 'owner', '-updated_at', '-id'], name='conversation_list'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='conversation_deleted'),
        ),
        migrations.AddConstraint(
            model_name='message',
            constraint=models.UniqueConstraint(fields=('conversation', 'seq'), name='message_seq'),
        ),
        migrations.AddConstraint(
            model_name='message',
            constraint=models.UniqueConstraint(fields=('conversation', 'client_id'), name='message_client_id'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['state', 'created_at'], name='run_active'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['organization', 'user', '-created_at'], name='run_recent'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('user', 'idempotency_key'), name='run_idempotency'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running', 'waiting_approval'])), fields=('answer_id',), name='run_one_active_an_answer'),
        ),
    ]
