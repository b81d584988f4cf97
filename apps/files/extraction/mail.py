"""Mail (EML): who wrote to whom about what, the body, and what is attached, nested mails among it."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from typing import BinaryIO

from apps.files.extraction import markup, plain
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

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
    return _decoded(str(message.get(name) or ""))


def _decoded(value: str) -> str:
    value = value[:_MAX_HEADER]  # long ones take quadratic time
    try:
        return clean(str(make_header(decode_header(value))))
    except (HeaderParseError, LookupError, ValueError, UnicodeError):
        return clean(value)


def _payload(part: Message) -> bytes:
    value = part.get_payload(decode=True)
    return value if isinstance(value, bytes) else b""


def _text(part: Message) -> str:
    data, charset = _payload(part), part.get_content_charset()
    try:
        return data.decode(charset) if charset else plain.decode(data)
    except (LookupError, UnicodeDecodeError):
        return plain.decode(data)


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
    if not message.is_multipart() or message.get_content_type() == "message/rfc822":
        yield message
        return
    parts = _children(message) if depth <= _MAX_NESTING else []
    if message.get_content_type() == "multipart/alternative" and parts:
        parts = [_best(parts)]
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
    if part.get_content_type() != "text/html":
        return list(plain.paragraphs(plain.printable(text)))
    try:
        return markup.elements_of(text)[0]
    except ExtractionFailed:
        return []


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
    message = message_from_bytes(file.read(), policy=policy.compat32)
    if not message.keys():
        raise ExtractionFailed(Reason.DAMAGED)
    subject = _header(message, "Subject")
    elements = heading(subject, [(name, _header(message, name)) for name in _SHOWN])
    inside: list[list[Element]] = []
    for number, part in zip(range(1, _MAX_PARTS), _leaves(message), strict=False):
        if _is_body(part):
            elements += _body(part)
        else:
            inside += scope.inside(_file_name(part, number), lambda part=part: _attached(part))  # type: ignore[misc]
    return Content([elements, *inside], subject[:HEADING_MAX_CHARS])
