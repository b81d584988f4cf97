"""Opening protected ZIP archives: the old cipher of PKZIP, and AES as WinZip uses it.

The format of the latter is WinZip's "AES Encryption Information": salt, two bytes that check the password, contents
under AES in counter mode with a counter that begins at 1 in little-endian order, and ten bytes of HMAC-SHA1.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import struct
import zipfile
import zlib
from typing import BinaryIO

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from apps.files.extraction.types import ExtractionFailed, Reason

_AES, _EXTRA = 99, 0x9901
_HEAD = 30
_MAX_MEMBERS = 5_000
_MAX_UNPACKED = 300 << 20
_ROUNDS = 1_000
_BLOCK, _CHUNK = 16, 1 << 16
_CODE_PAGES = ("utf-8", "cp437", "cp1252")


def _secrets(password: str) -> list[bytes]:
    """The password in each encoding that programs use for it."""
    found: list[bytes] = []
    for encoding in _CODE_PAGES:
        secret = password.encode(encoding, "ignore")
        if secret not in found:
            found.append(secret)
    return found


def unlocked(file: BinaryIO, password: str) -> bytes:
    """The same archive without protection. Raises ExtractionFailed."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > _MAX_UNPACKED:
                raise ExtractionFailed(Reason.TOO_LARGE)
            secret = _matching(archive, members, password)
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
                for member in members:
                    if not member.is_dir():
                        written.writestr(member.filename, _read(archive, member, secret))
    except (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    return buffer.getvalue()


def _matching(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], password: str) -> bytes:
    """The password in the encoding that opens the smallest protected member. Raises ExtractionFailed."""
    locked = [member for member in members if member.flag_bits & 1]
    if not locked:
        return b""
    smallest = min(locked, key=lambda member: member.compress_size)
    for secret in _secrets(password):
        try:
            _read(archive, smallest, secret)
        except ExtractionFailed:
            continue
        return secret
    raise ExtractionFailed(Reason.WRONG_PASSWORD)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, secret: bytes) -> bytes:
    if member.compress_type == _AES:
        return _read_aes(archive, member, secret)
    try:
        return archive.read(member, pwd=secret if member.flag_bits & 1 else None)
    except RuntimeError as error:  # what zipfile says of a password that its one check byte rules out
        raise ExtractionFailed(Reason.WRONG_PASSWORD) from error
    except (zipfile.BadZipFile, zlib.error) as error:
        if member.flag_bits & 1:  # one wrong password in 256 passes that check
            raise ExtractionFailed(Reason.WRONG_PASSWORD) from error
        raise


def _strength_and_method(member: zipfile.ZipInfo) -> tuple[int, int]:
    """Bytes of the key, and how the contents are compressed."""
    extra, at = member.extra, 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == _EXTRA and size >= 7 and extra[at + 8] in (1, 2, 3):
            return 8 + 8 * extra[at + 8], int(struct.unpack_from("<H", extra, at + 9)[0])
        at += 4 + size
    raise ExtractionFailed(Reason.LOCKED)


def _packed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's bytes as they stand in the file."""
    assert archive.fp is not None
    archive.fp.seek(member.header_offset)
    head = archive.fp.read(_HEAD)
    name, extra = struct.unpack_from("<HH", head, 26)
    archive.fp.seek(member.header_offset + _HEAD + name + extra)
    return archive.fp.read(member.compress_size)


def _read_aes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, secret: bytes) -> bytes:
    size, method = _strength_and_method(member)
    data = _packed(archive, member)
    salt, check, body, seal = data[: size // 2], data[size // 2 : size // 2 + 2], data[size // 2 + 2 : -10], data[-10:]
    keys = hashlib.pbkdf2_hmac("sha1", secret, salt, _ROUNDS, 2 * size + 2)
    if keys[2 * size :] != check:
        raise ExtractionFailed(Reason.WRONG_PASSWORD)
    if not hmac.compare_digest(hmac.digest(keys[size : 2 * size], body, "sha1")[:10], seal):
        raise ExtractionFailed(Reason.WRONG_PASSWORD)
    plain = _decrypted(keys[:size], body)
    if method == zipfile.ZIP_STORED:
        return plain
    if method != zipfile.ZIP_DEFLATED:
        raise ExtractionFailed(Reason.LOCKED)
    unpacked = zlib.decompressobj(-15).decompress(plain, member.file_size + 1)
    if len(unpacked) != member.file_size:
        raise ExtractionFailed(Reason.DAMAGED)
    return unpacked


def _decrypted(key: bytes, body: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - the counter is made here
    out = bytearray()
    for start in range(0, len(body), _CHUNK):
        chunk = body[start : start + _CHUNK]
        first = start // _BLOCK + 1
        counters = b"".join(at.to_bytes(_BLOCK, "little") for at in range(first, first + -(-len(chunk) // _BLOCK)))
        stream = encryptor.update(counters)[: len(chunk)]
        out += (int.from_bytes(chunk, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(chunk), "big")
    return bytes(out)
