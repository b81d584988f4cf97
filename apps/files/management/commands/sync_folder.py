"""Keep a folder of this machine in step with somebody's files.

    python manage.py sync_folder --folder /srv/handbooks --owner ada@example.org

The folder must lie below one of PARLEY_CONNECTOR_ROOTS. From the first call on the worker repeats it every few minutes,
until `--forget`, which leaves the files where they are.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import User
from apps.accounts.types import Actor
from apps.files.connectors import ConnectorError, LocalFolder, sync
from apps.files.models import Sync


class Command(BaseCommand):
    help = "Keep a folder of this machine in step with somebody's files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--folder", required=True, help="an absolute path")
        parser.add_argument("--owner", required=True, help="the e-mail address of an account")
        parser.add_argument("--allow-empty", action="store_true", help="also when the folder is empty all at once")
        parser.add_argument("--forget", action="store_true", help="do not keep it in step any more")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email=User.objects.normalize_email(options["owner"]), is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account {options['owner']}.")
        actor = Actor(user_id=user.pk, organization_id=user.organization_id)
        try:
            folder = LocalFolder(options["folder"], settings.CONNECTOR_ROOTS)
            if options["forget"]:
                gone, _ = Sync.objects.filter(owner_id=user.pk, kind=folder.kind, location=folder.location).delete()
                self.stdout.write("Forgotten; its files stay." if gone else "It was not kept in step.")
                return
            outcome = sync(actor, folder, allow_empty=options["allow_empty"])
        except ConnectorError as error:
            raise CommandError(str(error)) from error
        if outcome.busy:
            self.stdout.write("Another round is at it.")
            return
        counts = (f"{count} {name}" for name, count in asdict(outcome).items() if name != "busy")
        self.stdout.write(", ".join(counts))
