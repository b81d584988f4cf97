"""The operators' console: people, organizations, keys, runs, files and usage. Replicas have a page of their own.

What people write and upload is not shown here: fields are listed one by one, and none of them holds the text
of a message, an answer, a prompt or a page.
"""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.models import EmailAddress
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action, display
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminTextInputWidget

from apps.accounts.models import ApiKey, Membership, Organization, UsageEntry, User
from apps.accounts.public import create_account
from apps.conversations.models import Run
from apps.conversations.public import usable_models
from apps.files.models import File, FileStage, Passage, VectorVersion
from apps.files.public import recent_freshness
from apps.operations.forms import NewUserForm, UserForm

admin.site.index_title = "Console"
admin.site.unregister(Group)
admin.site.unregister(EmailAddress)


class ReadOnly:
    """For rows that only the product writes."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Bounded:
    """Lists stay quick on large tables: no total count, small pages."""

    show_full_result_count = False
    list_per_page = 50
    list_fullwidth = True


class MembershipInline(Bounded, TabularInline):  # type: ignore[misc]  # untyped library
    model = Membership
    fields = ("user", "role")
    autocomplete_fields = ("user",)
    extra = 0


@admin.register(User)
class UserAdmin(Bounded, DjangoUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    """Operators make accounts when sign-up is closed, set passwords where there is no mail, and lock people out."""

    form = UserForm
    add_form = NewUserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("email", "name", "is_staff", "is_active", "created_at", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email", "name")
    ordering = ("-id",)
    filter_horizontal = ()
    readonly_fields = ("id", "created_at", "last_login")
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("id", "email", "name", "password", "organization")}),
        ("Access", {"fields": ("is_active", "is_staff")}),
        ("Files", {"fields": ("files_at_most", "files_mib_at_most")}),
        ("Times", {"fields": ("created_at", "last_login")}),
    )
    add_fieldsets: Any = ((None, {"fields": ("email", "name", "new_password")}),)

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm[User], change: bool) -> None:
        if change:
            # One switch for operators: Django's own per-model permissions are not used.
            obj.is_superuser = obj.is_staff
            super().save_model(request, obj, form, change)
            return
        data = form.cleaned_data
        create_account(
            email=data["email"], password=data["new_password"], name=data["name"], by_operator=True, into=obj
        )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deleting a person means deleting what they own, everywhere; that is not a row's deletion."""
        return False


@admin.register(Organization)
class OrganizationAdmin(Bounded, ModelAdmin):  # type: ignore[misc]
    """Its policy counts for what is asked from then on; what was accepted before is answered as it was accepted."""

    list_display = ("name", "tier", "region", "personal", "created_at")
    list_filter = ("tier", "region", "personal")
    search_fields = ("name",)
    ordering = ("-id",)
    readonly_fields = ("id", "personal", "created_at")
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("id", "name", "tier", "personal", "created_at")}),
        ("Models", {"fields": ("allowed_models", "level_at_most", "region")}),
        ("Files", {"fields": ("files_at_most", "files_mib_at_most")}),
    )
    formfield_overrides: ClassVar[Any] = {ArrayField: {"widget": UnfoldAdminTextInputWidget}}
    inlines = (MembershipInline,)

    def save_model(self, request: HttpRequest, obj: Organization, form: ModelForm[Organization], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not usable_models(obj.policy):
            told = "By this policy none of the models that are known now can answer. Look at Replicas for their names."
            self.message_user(request, told, messages.WARNING)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Membership)
class MembershipAdmin(Bounded, ModelAdmin):  # type: ignore[misc]
    list_display = ("user", "organization", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")
    autocomplete_fields = ("user", "organization")
    ordering = ("-id",)
    fields = ("user", "organization", "role", "created_at")
    readonly_fields = ("created_at",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, Bounded, ModelAdmin):  # type: ignore[misc]
    list_display = ("name", "prefix", "user", "organization", "scopes", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("user", "organization")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("prefix", "user__email", "name")
    ordering = ("-id",)
    fields = ("id", *list_display, "created_at")
    actions = ("revoke",)

    @action(description="Revoke the selected keys")  # type: ignore[untyped-decorator]
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        ended = queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
        self.message_user(request, f"{ended} keys no longer work (open streams: within 3 seconds).", messages.SUCCESS)


@admin.register(Run)
class RunAdmin(ReadOnly, Bounded, ModelAdmin):  # type: ignore[misc]
    """A run's course and figures. Its prompt, context and text are not among the fields."""

    list_display = (
        "id",
        "state_label",
        "model",
        "replica",
        "user",
        "attempt",
        "ttft_ms",
        "completion_tokens",
        "created_at",
    )
    list_filter = ("state", "lane", "tier", "model")
    list_select_related = ("user",)
    search_fields = ("id__exact", "user__email", "request_id")
    ordering = ("-created_at",)
    fields = (
        "id",
        "organization",
        "user",
        "state",
        "error_code",
        "model_requested",
        "model",
        "replica",
        "lane",
        "tier",
        "priority",
        "attempt",
        "request_id",
        "finish_reason",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "ttft_ms",
        "transitions",
        "created_at",
        "started_at",
        "finished_at",
        "deadline_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        texts = ("prompt", "context", "partial_text", "token_ids", "prompt_token_ids", "params")
        queryset: QuerySet[Run] = super().get_queryset(request).defer(*texts)
        return queryset

    @display(  # type: ignore[untyped-decorator]
        description="state",
        ordering="state",
        label={"completed": "success", "running": "info", "failed": "danger", "cancelled": "warning"},
    )
    def state_label(self, run: Run) -> str:
        return run.state

    @display(description="error")  # type: ignore[untyped-decorator]
    def error_code(self, run: Run) -> str:
        """Only the code: an engine's message may quote the prompt."""
        return str((run.error or {}).get("code", "-"))


class FileStageInline(ReadOnly, TabularInline):  # type: ignore[misc]
    model = FileStage
    fields = ("name", "state", "attempt", "failures", "started_at", "finished_at", "error_code", "error_message")
    extra = 0


@admin.register(File)
class FileAdmin(ReadOnly, Bounded, ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "name", "kind", "size", "state", "stage", "page_count", "searchable", "owner", "created_at")
    list_filter = ("state", "kind", "searchable")
    list_select_related = ("owner",)
    search_fields = ("id__exact", "owner__email", "name")
    ordering = ("-id",)
    fields = (*list_display, "organization", "pages_ready", "pages_failed", "scanner", "error_code", "error_message")
    inlines = (FileStageInline,)
    list_before_template = "operations/freshness.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "freshness": recent_freshness()}
        response: HttpResponse = super().changelist_view(request, context)
        return response


@admin.register(VectorVersion)
class VectorVersionAdmin(ReadOnly, Bounded, ModelAdmin):  # type: ignore[misc]
    """What makes vectors, what made them before, and how many passages still wait for new ones."""

    list_display = ("version", "dimensions", "passages", "chosen_at", "retired_at")
    ordering = ("-chosen_at",)
    fields = list_display

    @display(description="passages with its vectors")  # type: ignore[untyped-decorator]
    def passages(self, version: VectorVersion) -> int:
        return Passage.objects.filter(embedding_version=version.version).count()


@admin.register(UsageEntry)
class UsageEntryAdmin(ReadOnly, Bounded, ModelAdmin):  # type: ignore[misc]
    list_display = (
        "created_at",
        "kind",
        "model",
        "user_id",
        "organization_id",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
    )
    list_filter = ("kind", "model")
    search_fields = ("user_id__exact", "organization_id__exact", "subject_id__exact")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    fields = (*list_display, "subject_id")
