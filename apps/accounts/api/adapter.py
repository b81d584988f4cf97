"""Where allauth's sign-up, sign-out and mail meet our services. Policy stays in the services."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.http import HttpRequest, JsonResponse

from apps.accounts.models import User
from apps.accounts.public.identity import forget_session
from apps.accounts.selectors import signup_is_open
from apps.accounts.services.signup import SIGNUP_CLOSED, create_account
from apps.core.errors import AppError, Conflict

_NO_MAIL = "This server sends no mail. Ask its operator to set a new password for you."


def _refusal(status: int, code: str, message: str, param: str | None = None) -> ImmediateHttpResponse:
    """An error in the shape of allauth's other answers, which the sign-in page already reads."""
    error = {"code": code, "message": message} | ({"param": param} if param else {})
    return ImmediateHttpResponse(JsonResponse({"status": status, "errors": [error]}, status=status))


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """allauth asks this also to list what is possible; only an attempt to sign up gets the explanation."""
        if signup_is_open():
            return True
        if request.method == "POST" and request.path.endswith("/auth/signup"):
            raise _refusal(HTTPStatus.FORBIDDEN, "signup_closed", SIGNUP_CLOSED)
        return False

    def new_user(self, request: HttpRequest) -> User:
        return User()

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Make the account through the service, which decides under a lock what the check above only guessed."""
        data = form.cleaned_data
        try:
            return create_account(email=data["email"], password=data["password"], into=user)
        except Conflict as error:
            raise _refusal(HTTPStatus.BAD_REQUEST, "email_taken", error.message, "email") from error
        except AppError as error:
            raise _refusal(error.status, error.code, error.message) from error

    def logout(self, request: HttpRequest) -> None:
        session_key = request.session.session_key
        super().logout(request)
        if session_key:
            forget_session(session_key)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Refuse openly when there is no mail server.

        Known and unknown addresses both come here, so the refusal tells nothing about who has an account.
        """
        if settings.MAIL_CONFIGURED:
            super().send_mail(template_prefix, email, context)
        elif template_prefix.endswith(("/password_reset_key", "/unknown_account")):
            raise _refusal(HTTPStatus.CONFLICT, "no_mail", _NO_MAIL)
