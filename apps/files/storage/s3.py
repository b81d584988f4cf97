"""Objects in an S3 API. Browsers send parts to presigned addresses; the web process sees no byte of them.

Signed addresses name the host that the browser reaches (`public_endpoint`), which may differ from the one
that this process uses. The part's length is among the signed headers, so the store itself refuses any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from apps.core.scratch import scratch
from apps.files.storage.types import (
    CHUNK,
    BadParts,
    Download,
    Part,
    StorageUnavailable,
    UploadGone,
    checked_key,
)

if TYPE_CHECKING:
    from botocore.client import BaseClient

_CONFIG = Config(
    signature_version="s3v4",
    s3={"addressing_style": "path"},
    connect_timeout=3,
    read_timeout=30,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=16,
    # Only what the protocol demands: signed addresses cannot carry a checksum that is not known yet.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
_GONE = {"NoSuchUpload", "NoSuchKey", "NoSuchBucket", "404", "NotFound"}
_BAD_PARTS = {
    "InvalidPart",
    "InvalidPartOrder",
    "EntityTooSmall",
    "MalformedXML",
    "InvalidRequest",
}
_BATCH = 1000


class S3Storage:
    """See `Storage`."""

    def __init__(
        self,
        *,
        endpoint: str,
        public_endpoint: str,
        bucket: str,
        region: str,
        access_key: str,
        secret_key: str,
    ) -> None:
        def client(url: str) -> BaseClient:
            return boto3.client(
                "s3",
                endpoint_url=url,
                region_name=region,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret_key,
                config=_CONFIG,
            )

        self._client: Any = client(endpoint)
        self._signer: Any = client(public_endpoint or endpoint)
        self._bucket = bucket

    def prepare(self, *, origins: Sequence[str]) -> None:
        """Create the bucket when it is missing and let pages from `origins` PUT parts and read their tags."""
        with _translated():
            if self._bucket not in [bucket["Name"] for bucket in self._client.list_buckets()["Buckets"]]:
                self._client.create_bucket(Bucket=self._bucket)
            rule = {
                "AllowedOrigins": list(origins),
                "AllowedMethods": ["PUT", "GET", "HEAD"],
                "AllowedHeaders": ["*"],
                "ExposeHeaders": ["ETag"],
                "MaxAgeSeconds": 600,
            }
            self._client.put_bucket_cors(Bucket=self._bucket, CORSConfiguration={"CORSRules": [rule]})

    # Uploads

    def create_upload(self, key: str, *, content_type: str) -> str:
        with _translated():
            upload = self._client.create_multipart_upload(**self._at(key), ContentType=content_type)
        return str(upload["UploadId"])

    def part_url(self, key: str, ref: str, *, number: int, size: int, expires_s: int) -> str:
        where = {
            **self._at(key),
            "UploadId": ref,
            "PartNumber": number,
            "ContentLength": size,
        }
        return str(self._signer.generate_presigned_url("upload_part", Params=where, ExpiresIn=expires_s))

    def list_parts(self, key: str, ref: str) -> tuple[Part, ...]:
        with _translated():
            pages = self._client.get_paginator("list_parts").paginate(**self._at(key), UploadId=ref)
            found = [part for page in pages for part in page.get("Parts", [])]
        return tuple(Part(part["PartNumber"], part["ETag"].strip('"'), part["Size"]) for part in found)

    def complete(self, key: str, ref: str, parts: Sequence[Part]) -> int:
        if not parts or not set(parts) <= set(self.list_parts(key, ref)):
            raise BadParts("Some parts are missing or were replaced. Ask which parts were received and send the rest.")
        named = [{"PartNumber": part.number, "ETag": f'"{part.etag}"'} for part in parts]
        with _translated():
            self._client.complete_multipart_upload(**self._at(key), UploadId=ref, MultipartUpload={"Parts": named})
        return self.size(key) or 0

    def abort(self, key: str, ref: str) -> None:
        try:
            with _translated():
                self._client.abort_multipart_upload(**self._at(key), UploadId=ref)
        except UploadGone:
            return

    # Objects

    def put(self, key: str, data: bytes, *, content_type: str) -> None:
        with _translated():
            self._client.put_object(**self._at(key), Body=data, ContentType=content_type)

    def size(self, key: str) -> int | None:
        try:
            with _translated():
                return int(self._client.head_object(**self._at(key))["ContentLength"])
        except UploadGone:
            return None

    def read(self, key: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        last = "" if end is None else str(end - 1)
        with _translated():
            body = self._client.get_object(**self._at(key), Range=f"bytes={start}-{last}")["Body"]
            try:
                yield from body.iter_chunks(CHUNK)
            finally:
                body.close()

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        with scratch("object") as folder:
            path = folder / "object"
            with path.open("wb") as file:
                for data in self.read(key):
                    file.write(data)
            yield path

    def url(self, key: str, download: Download, *, expires_s: int) -> str:
        kind = "inline" if download.inline else "attachment"
        where = {
            **self._at(key),
            "ResponseContentDisposition": f"{kind}; filename*=UTF-8''{quote(download.filename, safe='')}",
            "ResponseContentType": download.content_type,
        }
        return str(self._signer.generate_presigned_url("get_object", Params=where, ExpiresIn=expires_s))

    def list(self, prefix: str) -> tuple[str, ...]:
        return (
            *self._objects(prefix),
            *(f"{key}/{ref}" for key, ref in self._unfinished(prefix)),
        )

    def everything(self) -> Iterator[str]:
        with _translated():
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
                yield from (item["Key"] for item in page.get("Contents", []))
            for page in self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket):
                yield from (f"{item['Key']}/{item['UploadId']}" for item in page.get("Uploads", []))

    def delete_prefix(self, prefix: str) -> None:
        for key, ref in self._unfinished(prefix):
            self.abort(key, ref)
        keys = self._objects(prefix)
        for first in range(0, len(keys), _BATCH):
            batch = [{"Key": key} for key in keys[first : first + _BATCH]]
            with _translated():
                self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": checked_key(key)}

    def _objects(self, prefix: str) -> tuple[str, ...]:
        with _translated():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=checked_key(prefix)
            )
            return tuple(item["Key"] for page in pages for item in page.get("Contents", []))

    def _unfinished(self, prefix: str) -> tuple[tuple[str, str], ...]:
        with _translated():
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket, Prefix=checked_key(prefix)
            )
            return tuple((item["Key"], item["UploadId"]) for page in pages for item in page.get("Uploads", []))


@contextmanager
def _translated() -> Iterator[None]:
    """Botocore's errors as ours. Anything that is not about this object or upload means the store is not usable."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _GONE:
            raise UploadGone("This upload or file is not there any more.") from error
        if code in _BAD_PARTS:
            raise BadParts("The store refused the parts. Ask which parts were received and send the rest.") from error
        raise StorageUnavailable from error
    except BotoCoreError as error:
        raise StorageUnavailable from error
