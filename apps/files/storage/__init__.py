"""Object storage: one interface, kept on this machine's disk or in an S3 API."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from apps.files.storage.filesystem import FilesystemStorage
from apps.files.storage.types import (
    BadParts,
    Download,
    Part,
    Storage,
    StorageUnavailable,
    UploadGone,
)

__all__ = [
    "BadParts",
    "Download",
    "Part",
    "Storage",
    "StorageUnavailable",
    "UploadGone",
    "storage",
]


@lru_cache(maxsize=1)
def storage() -> Storage:
    """The configured store: S3 when an endpoint is set, else files below the state directory."""
    if not settings.S3_ENDPOINT:
        return FilesystemStorage(settings.OBJECTS_DIR)
    from apps.files.storage.s3 import (
        S3Storage,
    )  # boto3 costs 25 MB that a single machine need not pay

    return S3Storage(
        endpoint=settings.S3_ENDPOINT,
        public_endpoint=settings.S3_PUBLIC_ENDPOINT,
        bucket=settings.S3_BUCKET,
        region=settings.S3_REGION,
        access_key=settings.S3_ACCESS_KEY,
        secret_key=settings.S3_SECRET_KEY,
    )
