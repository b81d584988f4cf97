"""Which layers (optional content) of a PDF are off when it is opened, by name.

PDFium tells what a piece of a page belongs to, but not which layers are off, so that is looked up in the file itself:
in its plain objects and in those packed into object streams. Encrypted files are not looked into.
"""

from __future__ import annotations

import mmap
import re
import zlib
from collections.abc import Iterator

_LARGEST = 64 << 20
_MAX_UNPACKED = 32 << 20
_MAX_DEPTH = 3
_MARK = b"/OCProperties"
_PACKED = re.compile(rb"<<[^>]{0,400}/ObjStm\b[^>]{0,400}>>\s*stream\r?\n")
_FIRST = re.compile(rb"/First\s+(\d+)")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R\b")
_TEXT = re.compile(rb"/Name\s*(\((?:\\.|[^\\)])*\)|<[0-9A-Fa-f\s]*>)", re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


def names_off(data: mmap.mmap) -> frozenset[str]:
    """Names that only layers have which are off."""
    if len(data) > _LARGEST:
        return frozenset()
    if data.find(_MARK) >= 0:
        objects = _Objects(data, {})
    elif data.find(b"/ObjStm") >= 0:
        objects = _Objects(data, dict(_unpacked(data)))
        if not any(_MARK in body for body in objects.packed.values()):
            return frozenset()
    else:
        return frozenset()
    return objects.names_off()


def _unpacked(data: mmap.mmap) -> Iterator[tuple[int, bytes]]:
    """Number and text of each object in an object stream."""
    left = _MAX_UNPACKED
    for found in _PACKED.finditer(data):
        first = _FIRST.search(found.group())
        if first is None:
            continue
        try:
            text = zlib.decompressobj().decompress(data[found.end() : found.end() + (4 << 20)], left)
        except zlib.error:
            continue
        left -= len(text)
        if left <= 0:
            return
        begin = int(first.group(1))
        pairs = text[:begin].split()
        numbers = [int(value) for value in pairs if value.isdigit()]
        for at in range(0, len(numbers) - 1, 2):
            start = begin + numbers[at + 1]
            end = begin + numbers[at + 3] if at + 3 < len(numbers) else len(text)
            yield numbers[at], text[start:end]


class _Objects:
    def __init__(self, data: mmap.mmap, packed: dict[int, bytes]) -> None:
        self._data, self.packed = data, packed

    def _object(self, number: int) -> bytes:
        if number in self.packed:
            return self.packed[number]
        starts = [found.end() for found in re.finditer(rb"(?<!\d)%d\s+\d+\s+obj\b" % number, self._data)]
        if not starts:
            return b""
        end = self._data.find(b"endobj", starts[-1])  # the last one counts: files are changed at their end
        return self._data[starts[-1] : end if end >= 0 else starts[-1] + 4096][: 1 << 20]

    def _value(self, text: bytes, key: bytes, depth: int = 0) -> bytes:
        """The array or dictionary behind `key` in a dictionary's text, looked up where it is elsewhere."""
        found = re.search(rb"/%b\s*(?=[\[<\d])" % key, text)
        if found is None or depth > _MAX_DEPTH:
            return b""
        rest = text[found.end() :]
        if reference := _REFERENCE.match(rest):
            return self._object(int(reference.group(1)))
        return rest

    def _array(self, text: bytes, key: bytes) -> list[int]:
        value = self._value(text, key)
        opened, closed = value.find(b"["), value.find(b"]")
        return [int(number) for number in _REFERENCE.findall(value[opened:closed])] if 0 <= opened < closed else []

    def names_off(self) -> frozenset[str]:
        holders = [body for body in self.packed.values() if _MARK in body]
        at = self._data.rfind(_MARK)
        holder = holders[-1] if holders else self._data[at : at + (1 << 20)]
        properties = self._value(holder, b"OCProperties")
        default = self._value(properties, b"D")
        layers = self._array(properties, b"OCGs")
        off = set(self._array(default, b"OFF"))
        if re.match(rb"[^\[]*/BaseState\s*/OFF", default):
            off |= set(layers) - set(self._array(default, b"ON"))
        names = {number: _name(self._object(number)) for number in {*layers, *off}}
        shown = {names[number] for number in layers if number not in off}
        return frozenset(name for number in off if (name := names[number]) and name not in shown)


def _name(body: bytes) -> str:
    found = _TEXT.search(body)
    if found is None:
        return ""
    raw = found.group(1)
    if raw.startswith(b"<"):
        digits = b"".join(raw[1:-1].split())
        value = bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
    else:
        value = _ESCAPED.sub(_character, raw[1:-1])
    return text_of(value)


def text_of(value: bytes) -> str:
    """A PDF's text string."""
    if value.startswith(b"\xfe\xff"):
        return value[2:].decode("utf-16-be", "replace")
    return value.decode("utf-8" if value.startswith(b"\xef\xbb\xbf") else "latin-1", "replace").lstrip("\ufeff")


def _character(found: re.Match[bytes]) -> bytes:
    escaped = found.group(1)
    if escaped[:1].isdigit():
        return bytes([int(escaped, 8) & 0xFF])
    return _NAMED.get(escaped, escaped)
