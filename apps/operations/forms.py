"""Forms of the console."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.password_validation import validate_password
from unfold.forms import UserChangeForm
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from apps.accounts.models import Organization, User


class UserForm(UserChangeForm):  # type: ignore[misc]  # untyped library
    """Change a person's account. Operators cannot shut themselves out by mistake."""

    current_user_id: Any = None

    class Meta:
        model = User
        fields: ClassVar[Any] = (
            "email", "name", "organization", "is_active", "is_staff", "files_at_most", "files_mib_at_most",
        )  # fmt: skip
        help_texts: ClassVar[Any] = {
            "organization": "Where the person works, one that they are a member of. What they made in another is there "
            "again when they are back."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["organization"].queryset = Organization.objects.filter(memberships__user=self.instance)

    def clean_email(self) -> str:
        return User.objects.normalize_email(self.cleaned_data["email"])

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean()
        still_operator = data.get("is_staff", True) and data.get("is_active", True)
        others = User.objects.filter(is_staff=True, is_active=True).exclude(pk=self.instance.pk)
        if self.instance.is_staff and not still_operator and not others.exists():
            raise forms.ValidationError("This is the only operator. Make another one before you take this away.")
        return data


class NewUserForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """An account made by an operator; the service makes the organization that belongs to it."""

    new_password = forms.CharField(
        label="Password",
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="Tell it to the person; they can change it in their settings.",
    )

    class Meta:
        model = User
        fields: ClassVar[Any] = ("email", "name")
        widgets: ClassVar[Any] = {"email": UnfoldAdminEmailInputWidget(), "name": UnfoldAdminTextInputWidget()}

    def clean_email(self) -> str:
        email = User.objects.normalize_email(self.cleaned_data["email"])
        if User.objects.filter(email=email).exists():
            raise forms.ValidationError("There is an account with this address already.")
        return email

    def clean_new_password(self) -> str:
        password: str = self.cleaned_data["new_password"]
        validate_password(password, self.instance)
        return password
