"""Files that are protected with a password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Literal

from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from msoffcrypto.format.ooxml import OOXMLFile

from tests.factories import formats

PASSWORD = "Öffne dich 7"
_SALT = bytes(range(16))
_MANIFEST = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"


def office(data: bytes, password: str = PASSWORD) -> bytes:
    """A document of new Office, encrypted as Office does it."""
    locked = io.BytesIO()
    OOXMLFile(io.BytesIO(data)).encrypt(password, locked)
    return locked.getvalue()


# ZIP


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _by_aes(data: bytes) -> bytes:
    keys = hashlib.pbkdf2_hmac("sha1", PASSWORD.encode(), _SALT, 1_000, 66)
    encryptor = Cipher(algorithms.AES(keys[:32]), modes.ECB()).encryptor()
    stream = b"".join(encryptor.update(at.to_bytes(16, "little")) for at in range(1, len(data) // 16 + 2))
    body = bytes(one ^ other for one, other in zip(data, stream, strict=False))
    return _SALT + keys[64:66] + body + hmac.digest(keys[32:64], body, "sha1")[:10]


def _by_old_cipher(data: bytes, crc: int) -> bytes:
    """PKZIP's own cipher, as its notes describe it."""
    table = [_crc_step(value) for value in range(256)]
    keys = [0x12345678, 0x23456789, 0x34567890]

    def update(byte: int) -> None:
        keys[0] = (keys[0] >> 8) ^ table[(keys[0] ^ byte) & 0xFF]
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = (keys[2] >> 8) ^ table[(keys[2] ^ (keys[1] >> 24)) & 0xFF]

    for byte in PASSWORD.encode():
        update(byte)
    out = bytearray()
    for byte in bytes(11) + bytes([crc >> 24]) + data:
        mixed = (keys[2] | 2) & 0xFFFF
        out.append(byte ^ (((mixed * (mixed ^ 1)) >> 8) & 0xFF))
        update(byte)
    return bytes(out)


def _crc_step(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
    return value


def archive(files: Mapping[str, bytes], *, aes: bool) -> bytes:
    out, directory = b"", b""
    for name, data in files.items():
        crc, packed = zlib.crc32(data), _deflated(data)
        body = _by_aes(packed) if aes else _by_old_cipher(packed, crc)
        extra = struct.pack("<HHH2sBH", 0x9901, 7, 2, b"AE", 3, 8) if aes else b""
        fields = struct.pack(
            "<HHHHHIIIHH", 20, 1, 99 if aes else 8, 0, 0, 0 if aes else crc, len(body), len(data), len(name), len(extra)
        )
        directory += b"PK\x01\x02\x14\x00" + fields + bytes(10) + struct.pack("<I", len(out)) + name.encode() + extra
        out += b"PK\x03\x04" + fields + name.encode() + extra + body
    count = len(files)
    return out + directory + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(out), 0)


# OpenDocument

Scheme = Literal["aes", "blowfish", "whole"]


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _entry(name: str, data: bytes, scheme: Scheme) -> tuple[str, bytes]:
    """A member's entry in the manifest, and its encrypted bytes."""
    hashed = hashlib.sha1 if scheme == "blowfish" else hashlib.sha256
    secret, packed, initial = hashed(PASSWORD.encode()).digest(), _deflated(data), bytes(range(8))
    if scheme == "whole":
        key = Argon2id(salt=_SALT, length=32, iterations=1, lanes=1, memory_cost=64).derive(secret)
        initial = bytes(range(12))
        body = initial + AESGCM(key).encrypt(initial, packed, None)
        derivation = (
            'm:key-derivation-name="urn:org:documentfoundation:names:experimental:office:manifest:argon2id"'
            ' l:argon2-iterations="1" l:argon2-memory="64" l:argon2-lanes="1"'
        )
        check, cipher, start = (
            "",
            "http://www.w3.org/2009/xmlenc11#aes256-gcm",
            "http://www.w3.org/2001/04/xmlenc#sha256",
        )
    else:
        size = 32 if scheme == "aes" else 16
        key = hashlib.pbkdf2_hmac("sha1", secret, _SALT, 1_000, size)
        if scheme == "aes":
            initial = bytes(range(16))
            packed += bytes(-len(packed) % 16)
            cipher, start = "http://www.w3.org/2001/04/xmlenc#aes256-cbc", "http://www.w3.org/2000/09/xmldsig#sha256"
            locker = Cipher(algorithms.AES(key), modes.CBC(initial)).encryptor()
        else:
            cipher, start = "Blowfish CFB", "SHA1"
            locker = Cipher(Blowfish(key), CFB(initial)).encryptor()
        body = locker.update(packed) + locker.finalize()
        derivation = f'm:key-derivation-name="PBKDF2" m:iteration-count="1000" m:key-size="{size}"'
        kind = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0#sha256-1k" if scheme == "aes" else "SHA1/1K"
        check = f'm:checksum-type="{kind}" m:checksum="{_coded(hashed(packed[:1024]).digest())}"'
    entry = (
        f'<m:file-entry m:full-path="{name}" m:size="{len(data)}"><m:encryption-data {check}><m:algorithm'
        f' m:algorithm-name="{cipher}" m:initialisation-vector="{_coded(initial)}"/><m:key-derivation {derivation}'
        f' m:salt="{_coded(_SALT)}"/><m:start-key-generation m:start-key-generation-name="{start}"/>'
        "</m:encryption-data></m:file-entry>"
    )
    return entry, body


def open_document(document: bytes, scheme: Scheme) -> bytes:
    """An ODT, ODS or ODP, encrypted: each member, or the whole in one."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    locked: dict[str, str | bytes] = {"mimetype": members["mimetype"]}
    entries = ""
    for name, data in {"encrypted-package": document}.items() if scheme == "whole" else members.items():
        if name != "mimetype":
            entry, locked[name] = _entry(name, data, scheme)
            entries += entry
    names = f'xmlns:m="{_MANIFEST}" xmlns:l="urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0"'
    locked["META-INF/manifest.xml"] = f"<m:manifest {names}>{entries}</m:manifest>"
    return formats.package(locked)
