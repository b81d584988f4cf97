"""Look through all stores for what is left of deleted files.

    python manage.py scan_leftovers --file ID [--marker WORD ...]
    python manage.py scan_leftovers --all-deleted

Ends with status 1 when something is left. What stays by decision is listed with its reason.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.files.lifecycle.scanner import Finding, scan
from apps.files.models import File


class Command(BaseCommand):
    help = "Look through all stores for what is left of deleted files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--file", type=UUID, help="the file's id")
        which.add_argument("--all-deleted", action="store_true", help="each deleted file, one after the other")
        parser.add_argument("--marker", action="append", default=[], help="a word of its content, to be found too")

    def handle(self, *args: Any, **options: Any) -> None:
        deleted = File.objects.filter(deleted_at__isnull=False).order_by("id").values_list("id", flat=True)
        ids = [options["file"]] if options["file"] else deleted.iterator()
        left = 0
        try:
            for file_id in ids:
                found = scan(file_id, options["marker"])
                left += self._tell(file_id, found)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if left:
            self.stderr.write(f"{left} places hold something that should be gone.")
            sys.exit(1)
        self.stdout.write("Nothing is left.")

    def _tell(self, file_id: UUID, found: list[Finding]) -> int:
        for finding in found:
            kept = f"kept, {finding.kept}" if finding.kept else "LEFT"
            self.stdout.write(f"{file_id}  {finding.store:8}  {finding.place}  {finding.count}  {kept}")
        return sum(not finding.kept for finding in found)
