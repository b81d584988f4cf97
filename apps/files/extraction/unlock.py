"""The child's job of opening a protected file with its password: what comes back is the same file without protection.

The password arrives on standard input, never among the arguments, which other users of the machine can see.
"""

from __future__ import annotations

import ctypes
import io
import os
import struct
import sys
from typing import BinaryIO

import msoffcrypto
import pypdfium2_raw as pdfium
from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError, ParseError
from msoffcrypto.format.ooxml import OOXMLFile

from apps.files.extraction.answer import Job, say, say_raw
from apps.files.extraction.pdf.document import PdfDocument
from apps.files.extraction.types import ExtractionFailed, Reason


def _pdf(source: int, password: str) -> bytes:
    written = bytearray()

    def write(_: object, data: int, size: int) -> int:
        written.extend(ctypes.string_at(data, size))
        return 1

    try:
        document = PdfDocument(source, os.fstat(source).st_size, password)
    except ExtractionFailed as failed:
        raise ExtractionFailed(
            Reason.WRONG_PASSWORD if failed.reason is Reason.ENCRYPTED else failed.reason
        ) from failed
    with document:
        writer = pdfium.FPDF_FILEWRITE(version=1)
        writer.WriteBlock = type(writer.WriteBlock)(write)
        if not pdfium.FPDF_SaveAsCopy(document.handle, writer, pdfium.FPDF_REMOVE_SECURITY):
            raise ExtractionFailed(Reason.DAMAGED)
    return bytes(written)


def office(file: BinaryIO, password: str) -> bytes:
    """A document of Office without its protection. Raises ExtractionFailed."""
    unlocked = io.BytesIO()
    try:
        document = msoffcrypto.OfficeFile(file)
        verified = {"verify_password": True} if isinstance(document, OOXMLFile) else {}  # the others always do
        document.load_key(password=password, **verified)
        document.decrypt(unlocked)
    except InvalidKeyError as error:
        raise ExtractionFailed(Reason.WRONG_PASSWORD) from error
    except (DecryptionError, FileFormatError) as error:
        raise ExtractionFailed(Reason.LOCKED) from error
    except (ParseError, struct.error, OSError, ValueError, AttributeError, KeyError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    return unlocked.getvalue()


def _package(file: BinaryIO, password: str, kind: str) -> bytes:
    """What is a ZIP by its own bytes: an archive, or a document of OpenDocument's."""
    if kind == "zip":
        from apps.files.extraction.unlock_zip import unlocked
    else:
        from apps.files.extraction.unlock_open import unlocked
    return unlocked(file, password)


def work(job: Job) -> None:
    password = sys.stdin.buffer.read().decode()
    source = int(job["source"])
    if job["kind"] == "pdf":
        data = _pdf(source, password)
    else:
        with os.fdopen(source, "rb", closefd=False) as file:
            packed = file.read(4) == b"PK\x03\x04"
            file.seek(0)
            data = _package(file, password, job["kind"]) if packed else office(file, password)
    say({"unlocked": len(data)})
    say_raw(data)
