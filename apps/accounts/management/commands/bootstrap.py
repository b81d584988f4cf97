"""Make an account without a browser, for scripts and servers.

    python manage.py bootstrap --email me@example.org --password - --api-key < password.txt

The first account is the operator's. Only the new key goes to stdout, so that a script can capture it; all
that is meant for a person goes to stderr. Running it again changes nothing but the key that it prints.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.access import access_user_actor
from apps.accounts.models import User
from apps.accounts.services import create_account, create_key
from apps.core.errors import AppError

_FROM_STDIN = "-"


class Command(BaseCommand):
    help = "Make an account (the first one becomes the operator) and, on request, print an API key for it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--email", required=True, help="The address to sign in with.")
        parser.add_argument(
            "--password", default="", help="The password; '-' reads it from stdin. Else PARLEY_BOOTSTRAP_PASSWORD."
        )
        parser.add_argument("--name", default="", help="The name shown in the app.")
        parser.add_argument("--api-key", action="store_true", help="Print a new API key on stdout.")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email=User.objects.normalize_email(options["email"])).first()
        if user is None:
            user = self._create(options)
            self.stderr.write(f"{user.email} can sign in{' and is the operator' if user.is_staff else ''}.")
        else:
            self.stderr.write(f"{user.email} has an account already; nothing about it was changed.")
        if options["api_key"]:
            self._print_key(user)

    def _create(self, options: dict[str, Any]) -> User:
        password = options["password"] or settings.BOOTSTRAP_PASSWORD
        if password == _FROM_STDIN:
            password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise CommandError("Give a password: --password, '--password -' with stdin, or PARLEY_BOOTSTRAP_PASSWORD.")
        try:
            return create_account(email=options["email"], password=password, name=options["name"], by_operator=True)
        except AppError as error:
            raise CommandError(error.message) from error

    def _print_key(self, user: User) -> None:
        actor = access_user_actor(user)
        if actor is None:
            raise CommandError(f"{user.email} is locked out or in no organization, so it can have no key.")
        try:
            self.stdout.write(create_key(actor, name="bootstrap").key)
        except AppError as error:
            raise CommandError(error.message) from error
