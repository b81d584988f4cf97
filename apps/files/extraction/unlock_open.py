"""Opening protected OpenDocument files: each member under a key of its own (ODF 1.2: AES-256 or Blowfish, PBKDF2), or
the whole package in one member (LibreOffice since 24.2: AES-256-GCM, Argon2id)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import zipfile
import zlib
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from apps.files.extraction.content import Package, Scope
from apps.files.extraction.types import ExtractionFailed, Reason

_M = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}"
_LO = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_MANIFEST = "META-INF/manifest.xml"
WHOLE = "encrypted-package"
_MAX_ROUNDS = 2_000_000
_MAX_ARGON_KIB = 512 << 10
_CHECKED = 1024
_UNPACKED = 300 << 20


def unlocked(file: BinaryIO, password: str) -> bytes:
    """The same document without protection. Raises ExtractionFailed."""
    package = Package(file, Scope.of(_UNPACKED, lambda name, data, scope: None))
    manifest = package.xml(_MANIFEST)
    entries = {str(node.get(f"{_M}full-path")): node for node in manifest.iter(f"{_M}file-entry")}
    try:
        if WHOLE in package.names:
            return _opened(package.read(WHOLE), entries[WHOLE], password)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
            for name in sorted(package.names - {_MANIFEST}, key=lambda name: name != "mimetype"):
                entry = entries.get(name)
                locked = entry is not None and entry.find(f"{_M}encryption-data") is not None
                data = package.read(name)
                written.writestr(name, _opened(data, entry, password) if locked else data)
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExtractionFailed(Reason.LOCKED) from error
    return buffer.getvalue()


def _attribute(node: Any, name: str, default: str = "") -> str:
    return str(node.get(f"{_M}{name}") or node.get(f"{_LO}{name}") or default)


def _key(secret: bytes, derivation: Any, size: int) -> bytes:
    salt = base64.b64decode(_attribute(derivation, "salt"))
    if "argon2id" in _attribute(derivation, "key-derivation-name").lower():
        memory = int(_attribute(derivation, "argon2-memory"))
        if memory > _MAX_ARGON_KIB:
            raise ExtractionFailed(Reason.LOCKED)
        rounds, lanes = int(_attribute(derivation, "argon2-iterations")), int(_attribute(derivation, "argon2-lanes"))
        return Argon2id(salt=salt, length=size, iterations=min(rounds, 100), lanes=lanes, memory_cost=memory).derive(
            secret
        )
    rounds = int(_attribute(derivation, "iteration-count", "1024"))
    if rounds > _MAX_ROUNDS:
        raise ExtractionFailed(Reason.LOCKED)
    return hashlib.pbkdf2_hmac("sha1", secret, salt, rounds, size)


def _opened(data: bytes, entry: Any, password: str) -> bytes:
    """What a member holds. Raises ExtractionFailed."""
    locked = entry.find(f"{_M}encryption-data")
    algorithm, derivation = locked.find(f"{_M}algorithm"), locked.find(f"{_M}key-derivation")
    start = locked.find(f"{_M}start-key-generation")
    by = _attribute(start, "start-key-generation-name").lower() if start is not None else "sha1"
    secret = hashlib.new("sha256" if "sha256" in by else "sha1", password.encode(), usedforsecurity=False).digest()
    cipher = _attribute(algorithm, "algorithm-name").lower()
    initial = base64.b64decode(_attribute(algorithm, "initialisation-vector"))
    size = int(_attribute(derivation, "key-size", "32" if "aes256" in cipher else "16"))
    packed = _decrypted(cipher, _key(secret, derivation, size), initial, data)
    _check(packed, locked)
    return _inflated(packed, int(_attribute(entry, "size", "0")))


def _decrypted(cipher: str, key: bytes, initial: bytes, data: bytes) -> bytes:
    if "gcm" in cipher:
        try:
            return AESGCM(key).decrypt(data[:12], data[12:], None)
        except InvalidTag as error:
            raise ExtractionFailed(Reason.WRONG_PASSWORD) from error
    if "blowfish" in cipher:
        opener = Cipher(Blowfish(key), CFB(initial)).decryptor()
    elif "aes" in cipher:
        opener = Cipher(algorithms.AES(key), modes.CBC(initial)).decryptor()
    else:
        raise ExtractionFailed(Reason.LOCKED)
    return opener.update(data) + opener.finalize()


def _check(packed: bytes, locked: Any) -> None:
    """The sum of what was decrypted, where there is one, tells a wrong password."""
    kind, wanted = _attribute(locked, "checksum-type").lower(), _attribute(locked, "checksum")
    if not wanted:
        return
    looked_at = packed[:_CHECKED] if kind.endswith("1k") else packed
    found = hashlib.new("sha256" if "sha256" in kind else "sha1", looked_at, usedforsecurity=False).digest()
    if found != base64.b64decode(wanted):
        raise ExtractionFailed(Reason.WRONG_PASSWORD)


def _inflated(packed: bytes, size: int) -> bytes:
    if packed.startswith(b"PK\x03\x04") and size == len(packed):
        return packed
    try:
        data = zlib.decompressobj(-15).decompress(packed, _UNPACKED)
    except zlib.error as error:
        if packed.startswith(b"PK\x03\x04"):
            return packed
        raise ExtractionFailed(Reason.WRONG_PASSWORD) from error
    return data
