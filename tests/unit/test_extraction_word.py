"""Word documents as many programs write them: unusual packages, lists that are counted, boxes, forms, tables inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import formats
from tests.unit.test_extraction_formats import read

OFFICE = "http://schemas.openxmlformats.org"


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def listed(text: str, number: int, level: int) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


@pytest.mark.parametrize(
    "data",
    [
        formats.word(paragraph("words"), media="application/vnd.ms-word.document.macroEnabled.main+xml"),
        formats.word(paragraph("words"), media="application/vnd.ms-word.template.macroEnabledTemplate.main+xml"),
        formats.word(paragraph("words"), main="word/document2.xml"),
        formats.word(paragraph("words"), others='<Relationship Id="x" Type="t/image" Target="NULL"/>'),
        formats.word(paragraph("words"), others='<Relationship Id="x" Type="t/footnotes" Target="missing.xml"/>'),
    ],
)
def test_documents_whatever_their_package_is_like(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, data, "docx")
    assert found.found == [("NarrativeText", "words")]
    assert found.document.title == ""


def test_strict_documents(tmp_path: Path) -> None:
    strict = "http://purl.oclc.org/ooxml"
    parts = {
        "_rels/.rels": formats.relations([("officeDocument", "word/document.xml")]),
        "[Content_Types].xml": "<Types/>",
        "word/document.xml": f'<w:document xmlns:w="{OFFICE}/wordprocessingml/2006/main"><w:body>'
        f"{paragraph('strictly')}{table((paragraph('a'), paragraph('b')))}</w:body></w:document>",
    }
    data = {
        name: text.replace(f"{OFFICE}/wordprocessingml/2006", f"{strict}/wordprocessingml").replace(
            f"{OFFICE}/officeDocument/2006", f"{strict}/officeDocument"
        )
        for name, text in parts.items()
    }
    assert read(tmp_path, formats.package(data), "docx").found == [("NarrativeText", "strictly"), ("Table", "a | b")]


NUMBERING = """<w:numbering SPACES><w:abstractNum w:abstractNumId="0">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:isLgl/><w:lvlText w:val="%1.%2)"/></w:lvl>
</w:abstractNum><w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/></w:lvlOverride></w:num></w:numbering>"""
STYLES = """<w:styles SPACES><w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 2"/><w:pPr><w:numPr>
<w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>"""


def test_numbers_that_word_counts(tmp_path: Path) -> None:
    body = [
        listed("one", 1, 0), listed("two", 1, 0), paragraph("Head", '<w:pStyle w:val="H"/>'), listed("b", 1, 1),
        listed("three", 1, 0), listed("a", 1, 1), listed("dot", 2, 0), listed("nine", 3, 0), listed("ten", 3, 0),
        listed("in none", 0, 0), listed("of no list", 7, 0), table((listed("cell", 3, 0), paragraph("x"))),
    ]  # fmt: skip
    beside = {"numbering.xml": ("numbering", NUMBERING), "styles.xml": ("styles", STYLES)}
    assert read(tmp_path, formats.word("".join(body), beside=beside), "docx").found == [
        ("ListItem", "I. one"),
        ("ListItem", "II. two"),
        ("Title", "2.1) Head"),
        ("ListItem", "2.2) b"),
        ("ListItem", "III. three"),
        ("ListItem", "3.1) a"),
        ("ListItem", "dot"),
        ("ListItem", "IX. nine"),
        ("ListItem", "X. ten"),
        ("NarrativeText", "in none"),
        ("ListItem", "of no list"),
        ("Table", "cell | x"),
    ]


def test_text_boxes_are_paragraphs_of_their_own(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('in the box')}{table((paragraph('a'), paragraph('b')))}</w:txbxContent>"
    twice = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice>'
        f"<w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent>"
    )
    body = f"<w:p><w:r><w:t>before </w:t></w:r><w:r>{twice}</w:r><w:r><w:t>after</w:t></w:r></w:p>"
    assert read(tmp_path, formats.word(body), "docx").found == [
        ("NarrativeText", "before after"),
        ("NarrativeText", "in the box"),
        ("Table", "a | b"),
    ]


def test_forms_of_old_say_what_is_chosen(tmp_path: Path) -> None:
    field = (
        '<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData>{}</w:ffData></w:fldChar></w:r>'
        "<w:r><w:t> {}</w:t></w:r></w:p>"
    )
    body = (
        field.format("<w:checkBox><w:checked/></w:checkBox>", "yes")
        + field.format('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "no")
        + field.format(
            '<w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="green"/></w:ddList>', "wall"
        )
    )
    assert read(tmp_path, formats.word(body), "docx").text == "☒ yes\n\n☐ no\n\ngreen wall"


def test_tables_inside_tables_follow_and_frames_are_not_tables(tmp_path: Path) -> None:
    inner = table((paragraph("1"), paragraph("2")), (paragraph("3"), paragraph("4")))
    shifted = table((paragraph("l"), paragraph("r"))).replace(
        "</w:tbl>",
        f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr><w:tc>{paragraph("below r")}</w:tc></w:tr></w:tbl>',
    )
    body = table((paragraph("left") + inner + paragraph("on"), paragraph("right"))) + shifted
    body += table((paragraph("framed") + paragraph("in a box"),))
    assert read(tmp_path, formats.word(body), "docx").found == [
        ("Table", "left on | right"),
        ("Table", "1 | 2\n3 | 4"),
        ("Table", "l | r\n | below r"),
        ("NarrativeText", "framed"),
        ("NarrativeText", "in a box"),
    ]


def test_a_document_that_stands_for_a_part_of_another(tmp_path: Path) -> None:
    body = paragraph("before") + '<w:altChunk r:id="r1"/>' + paragraph("after")
    data = formats.word(body, beside={"part.html": ("aFChunk", "<h1>Of a page</h1><p>its text</p>")})
    assert read(tmp_path, data, "docx").found == [
        ("NarrativeText", "before"),
        ("Title", "Of a page"),
        ("NarrativeText", "its text"),
        ("NarrativeText", "after"),
    ]


def test_damaged_notes_do_not_take_the_text_with_them(tmp_path: Path) -> None:
    found = read(tmp_path, formats.word(paragraph("text"), beside={"f.xml": ("footnotes", "<w:broken")}), "docx")
    assert (found.text, found.document.notices) == ("text", ("parts_unread",))


@pytest.mark.parametrize(
    ("form", "start", "labels"),
    [
        ("chineseCountingThousand", 9, "九 十 十一"),
        ("chineseCounting", 20, "二十 二十一 二十二"),
        ("chineseLegalSimplified", 1, "壹 贰 叁"),
        ("ideographTraditional", 1, "甲 乙 丙"),
        ("decimalEnclosedCircle", 19, "⑲ ⑳ 21"),
        ("decimalFullWidth", 9, "９ １０ １１"),
        ("decimalZero", 9, "09 10 11"),
        ("upperLetter", 26, "Z AA BB"),
        ("lowerRoman", 1989, "mcmlxxxix mcmxc mcmxci"),
        ("japaneseCounting", 1000, "一千 一千〇一 一千〇二"),
    ],
)
def test_numbers_in_the_forms_of_many_scripts(tmp_path: Path, form: str, start: int, labels: str) -> None:
    numbering = (
        f'<w:numbering SPACES><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="{start}"/>'
        f'<w:numFmt w:val="{form}"/><w:lvlText w:val="%1"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    data = formats.word(listed("x", 1, 0) * 3, beside={"numbering.xml": ("numbering", numbering)})
    assert [text for _, text in read(tmp_path, data, "docx").found] == [f"{label} x" for label in labels.split()]


def test_signs_of_fonts_of_symbols(tmp_path: Path) -> None:
    run = '<w:p><w:r><w:rPr><w:rFonts w:ascii="{0}"/></w:rPr><w:t>{1}</w:t></w:r><w:r><w:t> end</w:t></w:r></w:p>'
    body = (
        run.format("Symbol", "a \uf070 \uf0b7")
        + run.format("Wingdings", "\uf0fc\uf0ff")
        + run.format("Arial", "ap \uf0b7")
    )
    body += '<w:p><w:r><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Wingdings" w:char="F0E8"/></w:r></w:p>'
    assert [text for _, text in read(tmp_path, formats.word(body), "docx").found] == [
        "α π • end", "✓ end", "ap • end", "α➔",
    ]  # fmt: skip
