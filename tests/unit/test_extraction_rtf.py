"""RTF as programs of thirty years have written it: code pages, hidden text, destinations that interrupt a paragraph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reading import read

FONTS = rb"{\fonttbl{\f0\fcharset204 Cyr;}{\f1\fcharset0 Lat;}}"


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (rb"shown {\v unseen}\v unseen\v0  again {\deleted gone}\v unseen\plain  end", ["shown again end"]),
        (rb"\mac caf\'8e", ["café"]),
        (rb"\pc caf\'82", ["café"]),
        (rb"\ansicpg1252\deff0" + FONTS + rb"\'cf\'f0\par{\f1 \'e9}\'e8\plain \'e8", ["Пр", "éии"]),
        (rb"{\upr{old}{\*\ud{new \u1055?}}}", ["new П"]),
        (rb"{\object\objemb{\*\objdata 0105}{\result seen}}", ["seen"]),
        (rb"{\*\do\dptxbx{\dptxbxtext old box\par}}end", ["old box", "end"]),
        (rb"{\shp{\*\shpinst{\shptxt box\par}}{\shprslt{\*\do{\dptxbxtext box\par}}}}end", ["box", "end"]),
        (rb"text{\*\atnid A}{\*\annotation{\*\atndate 1}\pard remark\par}", ["remark", "text"]),
        (rb"{\footnote \pard first {\footnote inner}on}text", ["inner", "first on", "text"]),
        (rb"{\pict\bin6 {{{}}\}ok", ["ok"]),
        (rb"no\bin-9  end", ["no end"]),
        (rb"left\column right", ["left", "right"]),
        (rb"{\listtext 1.\tab}\ls1 one\par{\listtext\'b7\tab}dot\par", ["1. one", "dot"]),
    ],
)
def test_what_is_seen_of_a_text(tmp_path: Path, body: bytes, texts: list[str]) -> None:
    assert read(tmp_path, "a.rtf", rb"{\rtf1" + body + rb"\par}").texts == texts


def test_notes_in_a_cell_do_not_part_the_table(tmp_path: Path) -> None:
    row = rb"\trowd\intbl %b\cell %b\cell\row"
    body = row % (b"a", rb"b{\footnote \pard about b\par} on") + row % (rb"{\listtext 1.\tab}c", b"d") + rb"\pard end"
    assert read(tmp_path, "a.rtf", rb"{\rtf1" + body + rb"\par}").texts == ["a | b on\nc | d", "about b", "end"]


def test_embedded_objects_are_read_by_kind(tmp_path: Path) -> None:
    def packed(kind: bytes, kept: bytes) -> bytes:
        names = b"".join(len(name).to_bytes(4, "little") + name for name in (kind + b"\0", b"", b""))
        data = b"\1\5\0\0\2\0\0\0" + names + len(kept).to_bytes(4, "little") + kept
        return rb"{\object\objemb{\*\objclass x}{\*\objdata " + data.hex("\n", 32).encode() + rb"}{\result seen}}"

    file = b"x,y\n1,2\n"
    native = (
        b"\2\0facts.csv\0C:\\facts.csv\0\0\0\3\0" + bytes((7, 0, 0, 0)) + b"C:\\tmp\0" + len(file).to_bytes(4, "little")
    )
    body = packed(b"Package", native + file) + packed(b"Unknown.Kind", b"?") + packed(b"Package", b"cut")
    found = read(tmp_path, "a.rtf", rb"{\rtf1 " + body + rb"{\*\objdata 01}\par}")
    assert found.texts[:3] == ["seenseenseen", "Attachment: facts.csv", "x | y\n1 | 2"]
    assert found.texts[3:] == ["Attachment: Unknown.Kind"]
    assert found.document.notices == ("parts_unread",)
