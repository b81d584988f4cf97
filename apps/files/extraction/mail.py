"""Mail (EML, and pages saved as mails are): who wrote to whom about what, the body, and what is attached, nested mails
among it. Boxes of mails (MBOX) one mail after the other."""

from __future__ import annotations

import binascii
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError, InvalidBase64CharactersDefect, InvalidBase64LengthDefect
from email.header import decode_header
from email.message import Message
from typing import BinaryIO

from apps.files.extraction import calendar, charsets, markup, plain
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, of_part
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Notice, Reason
from apps.files.types import BODY

_BASE64 = re.compile(rb"^[A-Za-z0-9+/=\s!-~]+$")
_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_WHOLE = ("message/rfc822", "message/delivery-status")
_SIGNATURE = "-- "
_SHOWN = ("From", "To", "Cc", "Bcc", "Date")
_MAX_PARTS = 1_000
_MAX_NESTING = 60
_MAX_HEADER = 10_000
_MAX_MAILS = 2_000
_POSTMARK = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From \S[^\r\n]{0,200}\d{4}[^\r\n]{0,200}\r?\n(?=[!-9;-~]+:)")
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LENGTH = re.compile(rb"\A(\d{1,10})[ \t]*\r?\n")  # of the mail behind it, as Apple's program writes it


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
    """Also parts that are said to have parts, and have none."""
    return (
        part.get_content_maintype() in ("text", "multipart")
        and not part.get_filename()
        and (part.get_content_disposition() != "attachment")
    )


def _attached(part: Message) -> bytes:
    """The bytes of an attachment; a mail inside is written out again, or unpacked where it should not be packed."""
    inner = _inner(part)
    if inner is None:
        return _payload(part)
    if not inner.keys() and (packed := part.get("Content-Transfer-Encoding")):
        inner["Content-Transfer-Encoding"] = packed
        return _payload(inner)
    return inner.as_bytes()


def _sections(message: Message, scope: Scope) -> Iterator[list[Element]]:
    elements = heading(_header(message, "Subject"), [(name, _header(message, name)) for name in _SHOWN])
    attached: list[list[Element]] = []
    for number, part in zip(range(1, _MAX_PARTS), _leaves(message), strict=False):
        if part.get_content_type() == "message/delivery-status":
            elements += _reported(part)
        elif _is_body(part):
            elements += _body(part)
        else:
            attached += scope.inside(_file_name(part, number), lambda part=part: _attached(part))  # type: ignore[misc]
    yield of_part(BODY, elements)
    yield from attached


def _narrow(data: bytes) -> bytes:
    """A mail that was saved in UTF-16, or with a mark, as mails are."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or charsets.wide(data):
        return plain.decode(data).encode("utf-8", "replace")
    return data.removeprefix(BOM_UTF8)


def _mails(data: bytes, scope: Scope) -> Iterator[Message]:
    """The mails of a box, each behind its postmark; the only one of a file without any."""
    if told := _LENGTH.match(data):
        data = data[told.end() : told.end() + int(told.group(1))]
    marks = list(_POSTMARK.finditer(data))
    if len(marks) > _MAX_MAILS:
        scope.notice(Notice.CUT_SHORT)
    if not marks or marks[0].start():
        yield message_from_bytes(data, policy=policy.compat32)
        return
    ends = [*(mark.start() for mark in marks[1:]), len(data)]
    for mark, end in zip(marks[:_MAX_MAILS], ends, strict=False):
        yield message_from_bytes(_ESCAPED.sub(rb"\1", data[mark.end() : end]), policy=policy.compat32)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    mails = [message for message in _mails(_narrow(file.read()), scope) if message.keys()]
    if not mails:
        raise ExtractionFailed(Reason.DAMAGED)
    subjects = [_header(message, "Subject") for message in mails]
    if len(mails) == 1:
        return Content(list(_sections(mails[0], scope)), subjects[0][:HEADING_MAX_CHARS])
    sections = [
        of_part(subject or f"mail {number}", section)
        for number, (subject, message) in enumerate(zip(subjects, mails, strict=True), start=1)
        for section in _sections(message, scope)
    ]
    return Content(sections, subjects[0][:HEADING_MAX_CHARS])
