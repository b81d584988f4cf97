"""Shapes of the conversation API: input checks, and the output the schema promises."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.types import RunState

STATES = [state.value for state in RunState]


class ErrorSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    retry_after_s = serializers.FloatField(allow_null=True)


class LocatorSerializer(serializers.Serializer[Any]):
    part = serializers.CharField(
        required=False, help_text="The file inside the file, as an attachment; of a mail's own text `body`."
    )
    sheet = serializers.CharField(required=False)
    slide = serializers.IntegerField(required=False)
    rows = serializers.ListField(
        child=serializers.IntegerField(),
        min_length=2,
        max_length=2,
        required=False,
        help_text="The first and the last, by the numbers that spreadsheet programs show.",
    )


class CitationSerializer(serializers.Serializer[Any]):
    n = serializers.IntegerField(help_text="The number by which the answer refers to it, as in [1].")
    passage_id = serializers.UUIDField()
    file_id = serializers.UUIDField(
        allow_null=True, help_text="Null once the file is deleted: its name and the passage are gone with it."
    )
    file_name = serializers.CharField()
    page = serializers.IntegerField(help_text="0 where a table of a sheet is cited.")
    table = serializers.IntegerField(
        required=False, allow_null=True, help_text="The number of the file's table that is cited."
    )
    sql = serializers.CharField(required=False, help_text="The question to the table whose answer is cited.")
    locator = LocatorSerializer(
        required=False, help_text="Where a person finds the passage, where a page would not say it."
    )
    heading = serializers.CharField()
    text = serializers.CharField()
    boxes = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=4, max_length=4),
        help_text="x0, y0, x1, y1 as fractions of the page, origin at the top left.",
    )
    source = serializers.ChoiceField(["digital", "ocr"])  # type: ignore[assignment]
    attributed = serializers.BooleanField(
        required=False, help_text="True when the answer did not cite and the passage was matched to it."
    )
    unsupported = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Quotes, numbers, dates and names that sentences citing this passage, or matched to it, state and "
        "the passage does not contain; at most five. Empty when all were found.",
    )


class UnreadyFileSerializer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    file_name = serializers.CharField()
    pages_pending = serializers.ListField(child=serializers.IntegerField())
    pages_failed = serializers.ListField(child=serializers.IntegerField())
    state = serializers.ChoiceField(
        ["reading", "needs_password", "failed"],
        required=False,
        help_text="Why what is named could not be searched; all of the file where no pages are named.",
    )
    reason = serializers.CharField(required=False, help_text="Of `failed`, where no page could be read.")


class LeftOutSerializer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    file_name = serializers.CharField()
    sentences = serializers.ListField(child=serializers.CharField(), help_text="What was not read of it.")


class SurveyedFileSerializer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    file_name = serializers.CharField()
    page_count = serializers.IntegerField()
    pages = serializers.ListField(child=serializers.IntegerField(), help_text="Whose text the model was given.")
    summarised = serializers.ListField(child=serializers.IntegerField(), help_text="Which its summaries are of.")
    found = serializers.ListField(child=serializers.IntegerField(), help_text="Of `words`: which have the words.")


class SurveySerializer(serializers.Serializer[Any]):
    way = serializers.ChoiceField(
        ["spread", "summary", "words"],
        help_text="Passages evenly through the files, summaries of their sections too, or a search of every page.",
    )
    words = serializers.ListField(child=serializers.CharField())
    files = SurveyedFileSerializer(many=True)


class NoticeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(
        [
            "reconstructed",
            "keyword_only",
            "keyword_away",
            "keyword_partly",
            "unready",
            "left_out",
            "survey",
            "escalated",
        ],
        help_text="Another replica went on with the answer; files were searched without vectors, because there are "
        "none yet, what makes them is away, or it is for some of them; pages could not be searched, files were not "
        "read whole, the question was about whole files, or a stronger model answered instead.",
    )
    at = serializers.IntegerField(required=False, help_text="Of `reconstructed`: code points written before.")
    attempt = serializers.IntegerField(required=False, help_text="Of `reconstructed`.")
    replica = serializers.CharField(required=False, allow_null=True, help_text="Of `reconstructed`.")
    other_weights = serializers.BooleanField(
        required=False, help_text="Of `reconstructed`, where it is so: the replica that went on has other weights."
    )
    files = UnreadyFileSerializer(many=True, required=False, help_text="Of `unready`.")
    left_out = LeftOutSerializer(many=True, required=False, help_text="Of `left_out`.")
    survey = SurveySerializer(required=False, help_text="Of `survey`: what of whole files the model was given.")
    from_model = serializers.CharField(required=False, help_text="Of `escalated`: the model that did not manage.")
    to_model = serializers.CharField(required=False, help_text="Of `escalated`: the model that answered.")
    why = serializers.CharField(required=False, help_text="Of `escalated`: what was wrong with the first answer.")


class CalledFunctionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    arguments = serializers.CharField(help_text="JSON that keeps to the tool's schema.")


class ToolCallSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.ChoiceField(["function"])
    function = CalledFunctionSerializer()


class AttachedFileSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    page_count = serializers.IntegerField(allow_null=True)
    state = serializers.CharField()


class ConversationSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()
    pinned = serializers.BooleanField()
    archived = serializers.BooleanField()
    deleted_at = serializers.DateTimeField(allow_null=True)
    head_message_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    active_run_id = serializers.UUIDField(allow_null=True)


class ConversationPageSerializer(serializers.Serializer[Any]):
    results = ConversationSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class MessageSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    parent_id = serializers.UUIDField(allow_null=True)
    seq = serializers.IntegerField()
    role = serializers.ChoiceField(["user", "assistant"])
    text = serializers.CharField()
    status = serializers.ChoiceField(STATES)
    run_id = serializers.UUIDField(allow_null=True)
    model = serializers.CharField()
    files = AttachedFileSerializer(many=True)
    citations = CitationSerializer(many=True)
    notices = NoticeSerializer(many=True)
    tool_calls = ToolCallSerializer(many=True, help_text="What a caller of /v1 was asked to do.")
    error = ErrorSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class MessagePageSerializer(serializers.Serializer[Any]):
    results = MessageSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class RunSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    question_id = serializers.UUIDField(allow_null=True)
    answer_id = serializers.UUIDField()
    state = serializers.ChoiceField(STATES)
    model_requested = serializers.CharField()
    model = serializers.CharField()
    replica = serializers.CharField()
    queue_position = serializers.IntegerField(
        allow_null=True, help_text="1 is next. Only of a waiting run that is read by its id; null elsewhere."
    )
    estimated_wait_s = serializers.FloatField(allow_null=True)
    attempt = serializers.IntegerField()
    ttft_ms = serializers.IntegerField(allow_null=True, help_text="Time to first token, from the claim, in ms.")
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    error = ErrorSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class ReasonSerializer(serializers.Serializer[Any]):
    step = serializers.CharField(
        help_text="user, policy, rule, complexity, load, escalation, placement, affinity or failover"
    )
    text = serializers.CharField()
    facts = serializers.DictField()


class DecisionSerializer(serializers.Serializer[Any]):
    model = serializers.CharField()
    replica = serializers.CharField()
    region = serializers.CharField(
        required=False, allow_blank=True, help_text="Where it had to be answered; empty for anywhere."
    )
    reasons = ReasonSerializer(many=True)
    score = serializers.FloatField(
        allow_null=True, required=False, help_text="How much a stronger model would gain; null where none was asked."
    )
    alternatives = serializers.ListField(child=serializers.CharField(), required=False)


class FailoverSerializer(serializers.Serializer[Any]):
    at = serializers.IntegerField(help_text="Characters of the answer that were there.")
    attempt = serializers.IntegerField()
    replica = serializers.CharField(help_text="The replica that went on.")
    other_weights = serializers.BooleanField(required=False, help_text="Where it is so: it has other weights.")


class TransitionSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(STATES)
    at = serializers.DateTimeField()
    attempt = serializers.IntegerField()
    by = serializers.CharField()


class RunDetailSerializer(RunSerializer):
    waited_ms = serializers.IntegerField(
        allow_null=True, help_text="Until a replica had a place, from the claim, in ms."
    )
    decision = DecisionSerializer(allow_null=True)
    reconstructed = FailoverSerializer(many=True)
    transitions = TransitionSerializer(many=True)
    lane = serializers.CharField()
    tier = serializers.CharField()


class PostedSerializer(serializers.Serializer[Any]):
    question = MessageSerializer()
    answer = MessageSerializer()
    run = RunSerializer()


class RegeneratedSerializer(serializers.Serializer[Any]):
    answer = MessageSerializer()
    run = RunSerializer()


class NewConversationSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class ConversationChangeSerializer(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=200, required=False)
    pinned = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)
    head_message_id = serializers.UUIDField(required=False)


class BranchSerializer(serializers.Serializer[Any]):
    message_id = serializers.UUIDField(help_text="The last message of the branch to copy.")


class NewMessageSerializer(serializers.Serializer[Any]):
    client_id = serializers.UUIDField(help_text="Chosen by the client; a retry with the same one changes nothing.")
    text = serializers.CharField(allow_blank=True, trim_whitespace=False)
    parent_id = serializers.UUIDField(allow_null=True, default=None, help_text="The answer that this follows.")
    file_ids = serializers.ListField(child=serializers.UUIDField(), default=list, max_length=100)
    model = serializers.CharField(max_length=200, default="auto")


class RegenerateSerializer(serializers.Serializer[Any]):
    client_id = serializers.UUIDField()
    model = serializers.CharField(max_length=200, default="auto")


class ModelReplicasSerializer(serializers.Serializer[Any]):
    ready = serializers.IntegerField()
    total = serializers.IntegerField()


class ModelSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(["ready", "loading", "unavailable"])
    eta_s = serializers.IntegerField(allow_null=True, help_text="Seconds until a loading model is ready, if known.")
    phase = serializers.CharField()
    demo = serializers.BooleanField()
    context_length = serializers.IntegerField()
    note = serializers.CharField()
    replicas = ModelReplicasSerializer()


class ModelListSerializer(serializers.Serializer[Any]):
    results = ModelSerializer(many=True)
    default = serializers.CharField()


class RecalledTurnSerializer(serializers.Serializer[Any]):
    message_id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="In its branch, from 1.")
    role = serializers.ChoiceField(["user", "assistant"])


class MemoSerializer(serializers.Serializer[Any]):
    turns = serializers.IntegerField(help_text="It is of this many, from the first.")
    text = serializers.CharField()
    model = serializers.CharField()


class HistorySerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField(help_text="Turns before the question.")
    sent = serializers.IntegerField(help_text="Of them word for word, the newest.")
    left_out = serializers.IntegerField()
    recalled = RecalledTurnSerializer(many=True, help_text="Older ones that the question needed.")
    summary = MemoSerializer(allow_null=True, help_text="Of the oldest, where one is kept.")


class LookupSerializer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    file_name = serializers.CharField()
    sql = serializers.CharField()
    rows = serializers.IntegerField()
    ms = serializers.IntegerField()
    error = serializers.CharField(help_text="What was wrong with the SQL; empty where it was answered.")


class LookedUpSerializer(serializers.Serializer[Any]):
    lookups = LookupSerializer(many=True)
    ms = serializers.IntegerField(help_text="With the time that the model took to ask.")
    problem = serializers.CharField(help_text="Why it ended early; empty where it did not.")


class RunContextSerializer(serializers.Serializer[Any]):
    messages = serializers.ListField(child=serializers.DictField())
    passages = serializers.ListField(child=serializers.DictField())
    mode = serializers.CharField(allow_null=True)
    unready = serializers.ListField(child=serializers.DictField())
    left_out = LeftOutSerializer(many=True)
    survey = SurveySerializer(allow_null=True, help_text="For questions about whole files.")
    tables = LookedUpSerializer(allow_null=True, help_text="What its model looked up in tables of files before.")
    history = HistorySerializer(allow_null=True, help_text="What it had of the conversation.")
