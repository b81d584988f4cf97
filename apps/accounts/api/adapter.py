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

_MADE = "parley.account_made"
_NO_MAIL = "This server sends no mail. Ask its operator to set a new password for you."


def _refusal(status: int, code: str, message: str, param: str | None = None) -> ImmediateHttpResponse:
    """An error in the shape of allauth's other answers, which the sign-in page already reads."""
    error = {"code": code, "message": message} | ({"param": param} if param else {})
    return ImmediateHttpResponse(JsonResponse({"status": status, "errors": [error]}, status=status))


def _is_attempt(request: HttpRequest | None) -> bool:
    """Whether this request wants an account and has not been given one."""
    if request is None or _MADE in request.META:
        return False
    return request.method == "POST" and request.path.endswith("/auth/signup")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """allauth asks this also to list what is possible; only an attempt to sign up gets the explanation."""
        if signup_is_open():
            return True
        if _is_attempt(request):
            raise _refusal(HTTPStatus.FORBIDDEN, "signup_closed", SIGNUP_CLOSED)
        return False

    def clean_email(self, email: str) -> str:
        """Refuse while sign-up is closed before anything tells whether the address has an account.

        While it is open that cannot be hidden without mail to verify addresses with; the limits slow probing down.
        """
        if _is_attempt(self.request):
            self.is_open_for_signup(self.request)
        return str(super().clean_email(email))

    def new_user(self, request: HttpRequest) -> User:
        return User()

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Make the account through the service, which decides under a lock what the check above only guessed."""
        data = form.cleaned_data
        try:
            made = create_account(email=data["email"], password=data["password"], into=user)
        except Conflict as error:
            raise _refusal(HTTPStatus.BAD_REQUEST, "email_taken", error.message, "email") from error
        except AppError as error:
            raise _refusal(error.status, error.code, error.message) from error
        request.META[_MADE] = True
        return made

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
