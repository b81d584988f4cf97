"""Files and children that mean harm, for tests of what reads them."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence

_PROTOCOL = """
import json, os, sys, time
job = json.loads(sys.argv[1])
def say(**message):
    os.write(1, json.dumps(message).encode() + b"\\n")
def page(number, **extra):
    say(page={"number": number, "source": "digital", "text": f"page {number}", "elements": [], **extra})
"""


def child(code: str) -> Sequence[str]:
    """A command for `extraction.run` that, instead of reading, does `code`; it may use `job`, `say` and `page`."""
    return (sys.executable, "-I", "-c", _PROTOCOL + code)


def pdf(objects: Sequence[str | bytes], *, root: int = 1) -> bytes:
    """A PDF of these objects, numbered from 1, with a correct cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body.encode("latin-1") if isinstance(body, str) else body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, root, start)
    return bytes(out)


def stream(data: bytes, *, extra: str = "") -> bytes:
    return f"<< /Length {len(data)} {extra}>>\nstream\n".encode() + data + b"\nendstream"


def spaces(head: bytes, size: int) -> bytes:
    """`head` and `size` spaces, compressed without ever holding them."""
    packer = zlib.compressobj(9)
    chunk = b" " * (1 << 20)
    return packer.compress(head) + b"".join(packer.compress(chunk) for _ in range(size >> 20)) + packer.flush()


FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def one_page(content: bytes, *, box: str = "0 0 612 792", packed: bool = False, rotate: int = 0) -> bytes:
    """A PDF of one page with this content stream; font F1 is Helvetica."""
    return pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Rotate {rotate} /Contents 4 0 R"
            " /Resources << /Font << /F1 5 0 R >> >> >>",
            stream(content, extra="/Filter /FlateDecode" if packed else ""),
            FONT,
        ]
    )


def text_at(x: float, y: float, text: str, *, size: float = 10) -> bytes:
    return f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET\n".encode("latin-1")


def many_objects(count: int) -> bytes:
    return one_page(b"".join(text_at(10 + index % 500, 10 + index % 700, "x") for index in range(count)))


def flate_bomb(size: int) -> bytes:
    return one_page(spaces(text_at(72, 700, "before the bomb"), size), packed=True)


def deep_nesting(depth: int) -> bytes:
    return one_page(text_at(72, 700, "nested") + b"[" * depth + b"]" * depth + b" TJ\n")


def looping_pages() -> bytes:
    """A page tree whose node is its own child."""
    return pdf(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 4 >>"])


def recursive_form() -> bytes:
    return pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            "/Resources << /Font << /F1 5 0 R >> /XObject << /X 6 0 R >> >> >>",
            stream(text_at(72, 700, "around a loop") + b"/X Do\n"),
            FONT,
            stream(b"/X Do /X Do\n", extra="/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources "
                   "<< /XObject << /X 6 0 R >> >> "),
        ]
    )  # fmt: skip


def lying_page_count(count: int) -> bytes:
    return pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [3 0 R] /Count {count} >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
        ]
    )


def nested_word(depth: int) -> bytes:
    """The body of a Word document with tables inside tables, `depth` deep."""
    opening, closing = "<w:tbl><w:tr><w:tc>", "<w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    return (opening * depth + closing * depth).encode()


# Kinds without pages


def entities(levels: int = 7) -> str:
    """A document type whose entity `h` expands to more than any machine holds."""
    names = "abcdefgh"
    steps = "".join(f'<!ENTITY {names[at + 1]} "{f"&{names[at]};" * 50}">' for at in range(levels))
    return f'<!DOCTYPE x [<!ENTITY a "{"ha" * 1000}">{steps}]>'


def endless_parts(count: int) -> bytes:
    """A mail whose parts all begin with the same line."""
    part = b"--a\nContent-Type: multipart/mixed; boundary=a\n\n"
    return b"Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n" + part * count


def parts_in_parts(depth: int) -> bytes:
    return b"Subject: x\n" + b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(depth)
    )
