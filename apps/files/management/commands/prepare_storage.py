"""Make the object store ready: the bucket, and leave for our pages to send parts to it. Idempotent.

    python manage.py prepare_storage

Files below the state directory need no preparation.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.files.storage import StorageUnavailable, storage


class Command(BaseCommand):
    help = "Make the object store ready for uploads from our pages."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.S3_ENDPOINT:
            self.stdout.write("Files are kept below the state directory; nothing to prepare.")
            return
        # Imported here as in `storage`: boto3 is for those who use it.
        from apps.files.storage.s3 import S3Storage

        store = storage()
        assert isinstance(store, S3Storage)
        try:
            store.prepare(origins=settings.CSRF_TRUSTED_ORIGINS)
        except StorageUnavailable as error:
            raise CommandError(f"No object store at {settings.S3_ENDPOINT}: {error}") from error
        self.stdout.write(f"Bucket {settings.S3_BUCKET} is ready at {settings.S3_ENDPOINT}.")
