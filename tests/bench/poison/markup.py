"""Text and markup: entities, depth, tables without end, patterns that backtrack, and bytes that are no text at all."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator

from tests.bench.poison.types import Poison, named
from tests.factories import documents, formats, hostile

_EXTERNAL = '<!DOCTYPE x [<!ENTITY h SYSTEM "file:///etc/passwd"><!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>'
_QUADRATIC = f'<!DOCTYPE x [<!ENTITY h "{"ha" * 50_000}">]>'


def _packages() -> dict[str, Callable[[str], bytes]]:
    """What puts one XML document where each of the packaged kinds reads its first."""
    return {
        "docx": _with_document,
        "pptx": lambda xml: formats.package({"[Content_Types].xml": "<Types/>", "ppt/presentation.xml": xml}),
        "xlsx": lambda xml: formats.package({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": xml}),
        "odt": lambda xml: formats.package({"mimetype": "x", "content.xml": xml}),
        "ods": lambda xml: formats.package({"mimetype": "x", "content.xml": xml}),
        "epub": lambda xml: formats.package({"mimetype": "x", "META-INF/container.xml": xml}),
        "xml": lambda xml: xml.encode(),
        "html": lambda xml: xml.encode(),
    }


def entities() -> Iterator[Poison]:
    """A billion laughs, a file from outside and one long entity often used, in everything that is XML."""
    laughs, outside = f"{hostile.entities()}<r>&h;</r>", f"{_EXTERNAL}<r>&h;</r>"
    often, deep = f"{_QUADRATIC}<r>{'&h;' * 20_000}</r>", "<a>" * 400_000
    for ending, wrap in _packages().items():
        yield Poison(f"billion-laughs.{ending}", lambda wrap=wrap: wrap(laughs))  # type: ignore[misc]
        yield Poison(f"entity-from-outside.{ending}", lambda wrap=wrap: wrap(outside))  # type: ignore[misc]
        yield Poison(f"quadratic-entity.{ending}", lambda wrap=wrap: wrap(often))  # type: ignore[misc]
        yield Poison(f"deep-elements.{ending}", lambda wrap=wrap: wrap(deep))  # type: ignore[misc]


def _word(body: str) -> bytes:
    """A right document but for its body."""
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return _with_document(f"<w:document {names}><w:body>{body}</w:body></w:document>")


def _with_document(xml: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(documents.word(["x"]))) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    return formats.package({**members, "word/document.xml": xml})


def _after_words(data: bytes) -> bytes:
    """Behind ordinary sentences, without which the check of what a file is would refuse most of these."""
    return documents.text() + b"\n\n" + data + b"\n\n" + documents.text()


def in_words(ending: str, **makers: Callable[[], bytes]) -> Iterator[Poison]:
    """Each as it is, and between ordinary sentences."""
    for poison in named(ending, **makers):
        yield poison
        yield Poison(f"in-words-{poison.name}", lambda make=poison.make: _after_words(make()))  # type: ignore[misc]


def poisons() -> Iterator[Poison]:
    yield from entities()
    yield from named(
        "docx",
        nested_tables=lambda: _word(hostile.nested_word(80).decode()),
        very_nested_tables=lambda: _word(hostile.nested_word(5_000).decode()),
        wide_table=lambda: _word(f"<w:tbl><w:tr>{'<w:tc/>' * 300_000}</w:tr></w:tbl>"),
        one_long_run=lambda: _word(f"<w:p><w:r><w:t>{'x' * 9_000_000}</w:t></w:r></w:p>"),
        many_paragraphs=lambda: _word("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 600_000),
    )
    yield from named(
        "odt",
        repeated_spaces=lambda: formats.open_document('<text:p>a<text:s text:c="2000000000"/>b</text:p>'),
        deep_sections=lambda: formats.open_document("<text:section>" * 200 + "x" + "</text:section>" * 200),
    )
    yield from named(
        "epub",
        spine_of_one=lambda: formats.book(["<p>again</p>"] * 3_000),
        deep_chapter=lambda: formats.book(["<div>" * 300_000]),
    )
    yield from named(
        "html",
        deep=lambda: b"<div>" * 400_000 + b"x",
        deep_tables=lambda: b"<table><tr><td>" * 20_000 + b"x",
        spans=lambda: b"<table><tr><td colspan=1000000 rowspan=1000000>x</table>" * 99,
        many_attributes=lambda: b"<p " + b"a=b " * 1_000_000 + b">x</p>",
        unclosed=lambda: b"<a<b<" * 1_000_000,
        script_bomb=lambda: b"<script>" + b"<!--<script>" * 300_000,
        entities=lambda: b"&#x10ffff;&amp;&zwj;" * 400_000,
        gif_of_html=lambda: b"GIF89a/*<html><body><p>both</p></body></html>*/=1;",
        svg=lambda: hostile.entities().encode() + b'<svg xmlns="http://www.w3.org/2000/svg"><text>&h;</text></svg>',
        endless_comment=lambda: b"<p>x</p><!--" + b"-" * 5_000_000,
    )
    yield from named(
        "rtf",
        deep=lambda: b"{\\rtf1" + b"{" * 2_000_000,
        closing=lambda: b"{\\rtf1 x" + b"}" * 2_000_000,
        cells=lambda: b"{\\rtf1 " + b"\\intbl x\\cell " * 400_000 + b"\\row}",
        binary=lambda: b"{\\rtf1 {\\bin2147483647 x}}",
        hex_bytes=lambda: b"{\\rtf1 " + b"\\'ff" * 2_000_000 + b"}",
        long_word=lambda: b"{\\rtf1 \\" + b"a" * 5_000_000 + b"}",
        big_numbers=lambda: b"{\\rtf1 " + b"\\u99999999999999999999 ?\\uc2147483647 " * 50_000 + b"x}",
    )
    yield from in_words(
        "md",
        emphasis=lambda: b"*a **b " * 200_000,
        brackets=lambda: b"[" * 500_000 + b"]" * 500_000,
        links=lambda: b"[a](" * 200_000,
        quotes=lambda: b">" * 500_000 + b" x",
        ticks=lambda: b"".join(b"`" * count + b" " for count in range(2_000)),
        tables=lambda: b"|" * 500_000 + b"\n" + b"|-" * 250_000 + b"\n",
        headings=lambda: b"#" * 2_000_000 + b" x\n" + b"# \n" * 300_000,
        fences=lambda: b"```\n" * 500_001,
        lists=lambda: b"".join(b" " * depth + b"- x\n" for depth in range(3_000)),
    )
    yield from in_words(
        "txt",
        one_line=lambda: b"a" * (60 << 20),
        empty_lines=lambda: b"\n" * (40 << 20),
        null_bytes=lambda: bytes(4 << 20),
        text_and_nulls=lambda: b"text\0" * 500_000,
        marks_on_a_letter=lambda: b"a" + "\u0301".encode() * 2_000_000,
        both_directions=lambda: "\u202e".encode() * 500_000 + b"x" + "\u2066".encode() * 500_000,
        private_use=lambda: "\ue000".encode() * 500_000,
        broken_utf8=lambda: b"\xf0\x9f\x98" * 500_000 + b" word",
        broken_utf16=lambda: b"\xff\xfe" + b"\x00\xd8" * 500_000,
        utf32=lambda: "words in wide letters ".encode("utf-32") * 9_000,
        empty=lambda: b" ",
        one_byte=lambda: b"\xff",
        escapes=lambda: b"\x1b[31m\x08\x07" * 300_000,
        regex_bait=lambda: b"a@" * 300_000 + b"www." * 300_000 + b"1.2.3." * 200_000 + b"(((" * 100_000,
    )
    yield from in_words(
        "json",
        deep=lambda: b"[" * 2_000_000,
        deep_objects=lambda: b'{"a":' * 1_000_000,
        big_number=lambda: b"[" + b"9" * 5_000_000 + b"]",
        long_line=lambda: b'{"a": "' + b"\\u0041" * 2_000_000 + b'"}',
    )
    yield from in_words("yaml", laughs=lambda: b"a: &a [x,x]\n" + b"b: &b [*a,*a,*a,*a,*a,*a]\n" * 9_000)
    yield from in_words("py", parentheses=lambda: b"(" * 1_000_000, one_line=lambda: b"x=1;" * 3_000_000)


def mislabelled() -> Iterator[Poison]:
    """Files that are something else, or two things at once."""
    both = hostile.one_page(hostile.text_at(72, 700, "both")) + formats.package({"a.txt": "hidden"})
    program = b"\x7fELF\2\1\1" + bytes(4_000)
    yield Poison("pdf-and-zip.pdf", lambda: both)
    yield Poison("pdf-and-zip.zip", lambda: both)
    yield Poison("zip-before-pdf.pdf", lambda: formats.package({"a.txt": "x"}) + hostile.one_page(b""))
    yield Poison("png-as-pdf.pdf", documents.pixel_bomb)
    yield Poison("pdf-as-png.png", lambda: hostile.one_page(b""))
    yield Poison("word-as-sheet.xlsx", lambda: documents.word(["x"]))
    yield Poison("zip-as-mail.eml", lambda: formats.package({"a.txt": "x"}))
    yield Poison("mail-as-msg.msg", lambda: formats.mail("a", "b"))
    yield Poison("text-as-word.doc", lambda: b"just text " * 900)
    yield Poison("text-as-heic.heic", lambda: b"just text " * 900)
    for ending in ("pdf", "docx", "txt", "csv", "jpg", "doc"):
        yield Poison(f"program.{ending}", lambda: program)
    yield Poison("test-signature.txt", documents.eicar)
    yield Poison("test-signature.docx", documents.infected_word)
