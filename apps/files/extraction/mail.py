"""Mail (EML): who wrote to whom about what, the body, and what is attached, nested mails among it."""

from __future__ import annotations

import binascii
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError, InvalidBase64CharactersDefect, InvalidBase64LengthDefect
from email.header import decode_header
from email.message import Message
from typing import BinaryIO

from apps.files.extraction import calendar, charsets, markup, plain
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, of_part
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason
from apps.files.types import BODY

_BASE64 = re.compile(rb"^[A-Za-z0-9+/=\s!-~]+$")
_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_WHOLE = ("message/rfc822", "message/delivery-status")
_SIGNATURE = "-- "
_SHOWN = ("From", "To", "Cc", "Date")
_MAX_PARTS = 1_000
_MAX_NESTING = 60
_MAX_HEADER = 10_000


def heading(subject: str, fields: list[tuple[str, str]]) -> list[Element]:
    """The head of a mail as elements; also that of Outlook's."""
    lines = "\n".join(f"{name}: {value}" for name, value in fields if value)
    title = [Element(Category.TITLE, subject[:HEADING_MAX_CHARS], level=1)] if subject else []
    return [*title, *([Element(Category.UNCATEGORIZED_TEXT, lines)] if lines else [])]


def _header(message: Message, name: str) -> str:
    """A header's text, whatever it is encoded in: also the raw bytes that it should not have."""
    raw = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    value = str(raw)[:_MAX_HEADER]  # long ones take quadratic time
    if not value.isascii():
        value = plain.decode(value.encode("utf-8", "surrogateescape"))
    return _decoded(value)


def _decoded(value: str) -> str:
    value = value[:_MAX_HEADER]
    try:
        return clean("".join(_word(part, charset) for part, charset in decode_header(value)))
    except (HeaderParseError, LookupError, ValueError, UnicodeError):
        return clean(value)


def _word(part: bytes | str, charset: str | None) -> str:
    if isinstance(part, str):
        return part
    if charset is None:
        return part.decode("raw-unicode-escape")  # as `decode_header` packs what is not encoded
    text = charsets.by_declaration(part, charset)
    return plain.decode(part) if text is None else text


def _payload(part: Message) -> bytes:
    value = part.get_payload(decode=True)
    if not isinstance(value, bytes):
        return b""
    damaged = any(
        isinstance(defect, InvalidBase64CharactersDefect | InvalidBase64LengthDefect) for defect in part.defects
    )
    return _base64(part, value) if damaged or _untouched(part, value) else value


def _untouched(part: Message, value: bytes) -> bool:
    """Whether base64 was handed back as it stands, because it does not hold together."""
    return str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64" and bool(_BASE64.match(value))


def _base64(part: Message, value: bytes) -> bytes:
    """What can be saved of damaged base64: characters that are none are passed over, as is an incomplete end."""
    packed = part.get_payload()
    digits = _NO_BASE64.sub(b"", packed.encode("ascii", "ignore")) if isinstance(packed, str) else value
    try:
        return binascii.a2b_base64(digits[: len(digits) // 4 * 4 + (len(digits) % 4 > 1) * (len(digits) % 4)] + b"==")
    except binascii.Error:
        return value


def _text(part: Message) -> str:
    data, charset = _payload(part), part.get_content_charset()
    text = charsets.by_declaration(data, charset) if charset else None
    return plain.decode(data) if text is None else text


def _file_name(part: Message, number: int) -> str:
    try:
        name = _decoded(part.get_filename() or "")
    except (LookupError, ValueError, UnicodeError):
        name = ""
    if name or part.get_content_type() != "message/rfc822":
        return name or f"part {number}"
    inner = _inner(part)
    subject = _header(inner, "Subject") if inner is not None else ""
    return f"{subject or f'message {number}'}.eml"


def _inner(part: Message) -> Message | None:
    """The mail that this part is."""
    inner = _children(part)
    return inner[0] if part.get_content_type() == "message/rfc822" and inner else None


def _children(part: Message) -> list[Message]:
    parts = part.get_payload()
    return [child for child in parts if isinstance(child, Message)] if isinstance(parts, list) else []


def _leaves(message: Message, depth: int = 0) -> Iterator[Message]:
    """Bodies and attachments in order; of alternatives only the best that can be read."""
    if not message.is_multipart() or message.get_content_type() in _WHOLE:
        yield message
        return
    parts = _children(message) if depth <= _MAX_NESTING else []
    if message.get_content_type() == "multipart/alternative" and parts:
        parts = [_best(parts), *(part for part in parts if part.get_content_type() == "text/calendar")]
    for part in parts:
        yield from _leaves(part, depth + 1)


def _best(parts: list[Message]) -> Message:
    """HTML when there is text in it, as it has the structure; else plain text; else the last, as the sender would."""
    for part in parts:
        if part.get_content_type() != "text/plain" and any(_html_text(leaf) for leaf in part.walk()):
            return part
    return next((part for part in parts if part.get_content_type() == "text/plain"), parts[-1])


def _html_text(part: Message) -> bool:
    return part.get_content_type() == "text/html" and bool(_body(part))


def _body(part: Message) -> list[Element]:
    text = _text(part)
    if part.get_content_type() == "text/calendar":
        return calendar.elements_of(text)
    if str(part.get_param("format", "")).lower() == "flowed":
        text = _unflowed(text, delete_space=str(part.get_param("delsp", "")).lower() == "yes")
    if part.get_content_type() != "text/html":
        return list(plain.paragraphs(plain.prose(text)))
    try:
        return markup.elements_of(text)[0]
    except ExtractionFailed:
        return []


def _unflowed(text: str, *, delete_space: bool) -> str:
    """Paragraphs whose lines were broken by the sender's program (RFC 3676) in one piece."""
    lines: list[str] = []
    flows = False
    for line in plain.printable(text).split("\n"):
        if flows and line and not line.startswith(">") and line != _SIGNATURE:
            lines[-1] = (lines[-1][:-1] if delete_space else lines[-1]) + line
        else:
            lines.append(line)
        flows = line.endswith(" ") and line != _SIGNATURE and not line.startswith(">")
    return "\n".join(lines)


def _reported(part: Message) -> list[Element]:
    """What a mail server reports of a mail that did not arrive: fields about it, and about each reader."""
    texts = ("\n".join(f"{name}: {clean(str(value))}" for name, value in child.items()) for child in _children(part))
    return [Element(Category.UNCATEGORIZED_TEXT, text) for text in texts if text]


def _is_body(part: Message) -> bool:
    return (
        part.get_content_maintype() == "text"
        and not part.get_filename()
        and (part.get_content_disposition() != "attachment")
    )


def _attached(part: Message) -> bytes:
    """The bytes of an attachment; a mail inside is written out again."""
    inner = _inner(part)
    return inner.as_bytes() if inner is not None else _payload(part)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    message = message_from_bytes(file.read().removeprefix(BOM_UTF8), policy=policy.compat32)
    if not message.keys():
        raise ExtractionFailed(Reason.DAMAGED)
    subject = _header(message, "Subject")
    elements = heading(subject, [(name, _header(message, name)) for name in _SHOWN])
    attached: list[list[Element]] = []
    for number, part in zip(range(1, _MAX_PARTS), _leaves(message), strict=False):
        if part.get_content_type() == "message/delivery-status":
            elements += _reported(part)
        elif _is_body(part):
            elements += _body(part)
        else:
            attached += scope.inside(_file_name(part, number), lambda part=part: _attached(part))  # type: ignore[misc]
    return Content([of_part(BODY, elements), *attached], subject[:HEADING_MAX_CHARS])
