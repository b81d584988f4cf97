"""Files of the flowing kinds that mislead readers: mails, pages, tables and workbooks with the usual faults."""

from __future__ import annotations

import io
import zipfile
from email.message import EmailMessage
from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from apps.files.extraction.types import Category
from tests.factories import formats, traps
from tests.reading import read

HEAD = b"From: a@example.org\r\nSubject: s\r\nMIME-Version: 1.0\r\n"


def body(folder: Path, headers: bytes, content: bytes) -> list[str]:
    return read(folder, "a.eml", HEAD + headers + b"\r\n\r\n" + content).texts[2:]


# Mail


def test_lines_that_the_senders_program_broke_are_joined(tmp_path: Path) -> None:
    flowed = b"Content-Type: text/plain; charset=utf-8; format=flowed"
    text = b"A paragraph that \r\nwas wrapped.\r\n\r\n> quoted \r\n> text\r\n-- \r\nName"
    assert body(tmp_path, flowed, text) == ["A paragraph that was wrapped.", "> quoted \n> text\n-- \nName"]
    assert body(tmp_path, flowed + b"; delsp=yes", "日本 \r\n語".encode()) == ["日本語"]


def test_damaged_encodings_of_a_mail_lose_little(tmp_path: Path) -> None:
    kind = b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: "
    assert body(tmp_path, kind + b"quoted-printable", b"caf=C3=A9 100=% sure=\r\n joined =ZZ") == [
        "café 100=% sure joined =ZZ"
    ]
    assert body(tmp_path, kind + b"base64", b"SGVsbG8g!V29ybGQ=") == ["Hello World"]


@pytest.mark.parametrize(
    "subject",
    [
        "Grüße".encode(),
        "Grüße".encode("cp1252"),
        b"=?utf-8?q?Gr=C3=BC=C3?=\r\n =?utf-8?q?=9Fe?=",
        b"=?windows-1252?b?R3L832U=?=",
    ],
)
def test_subjects_encoded_rightly_or_not_at_all(tmp_path: Path, subject: bytes) -> None:
    data = b"\xef\xbb\xbfFrom: a@example.org\r\nSubject: " + subject + b"\r\n\r\nbody"
    assert read(tmp_path, "a.eml", data).document.title == "Grüße"


PARTS = """--b\r
Content-Type: text/html; charset=iso-8859-1\r
\r
<p>caf\xe9 in HTML only</p>\r
--b\r
Content-Type: text/plain\r
Content-Disposition: attachment; filename*0*=utf-8''%C3%BCber; filename*1*=%20lang.txt\r
\r
attached one\r
--b\r
Content-Type: text/plain; name="=?utf-8?B?w7xiZXIudHh0?="\r
Content-Disposition: attachment\r
\r
attached two\r
--b\r
Content-Type: text/calendar; method=REQUEST\r
\r
BEGIN:VCALENDAR\r
BEGIN:VEVENT\r
SUMMARY:Budget\\, again\r
ORGANIZER;CN=Ada:mailto:ada@example.org\r
DTSTART;TZID=Europe/Zurich:20240102T100000\r
DESCRIPTION:A long des\r
 cription\r
END:VEVENT\r
END:VCALENDAR\r
--b--\r
"""


def test_names_of_attachments_and_invitations(tmp_path: Path) -> None:
    found = body(tmp_path, b"Content-Type: multipart/mixed; boundary=b", PARTS.encode("latin-1"))
    assert found == [
        "café in HTML only",
        "Summary: Budget, again\nOrganizer: Ada mailto:ada@example.org\nStart: 2024-01-02 10:00\n"
        "Description: A long description",
        "Attachment: über lang.txt",
        "attached one",
        "Attachment: über.txt",
        "attached two",
    ]


def test_what_outlook_wraps_up_is_unwrapped(tmp_path: Path) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "s"
    message.set_content("outer")
    wrapped = traps.winmail("Grüße.txt", b"wrapped words")
    message.add_attachment(wrapped, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    assert read(tmp_path, "a.eml", message.as_bytes()).texts[2:] == [
        "outer",
        "Attachment: winmail.dat",
        "The body inside",
        "Attachment: Grüße.txt",
        "wrapped words",
    ]


@pytest.mark.parametrize("cut", range(4, 160, 13))
def test_a_wrapping_that_is_cut_off_does_not_end_the_reader(tmp_path: Path, cut: int) -> None:
    data = formats.mail("s", "outer", attachments={"winmail.dat": traps.winmail("n.txt", b"x")[:cut]})
    assert "outer" in read(tmp_path, "a.eml", data).text


def test_a_report_of_delivery(tmp_path: Path) -> None:
    report = (
        b"--b\r\n\r\nIt failed\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n"
        b"Reporting-MTA: x\r\n\r\nAction: failed\r\n--b--"
    )
    texts = body(tmp_path, b"Content-Type: multipart/report; boundary=b", report)
    assert texts == ["It failed", "Reporting-MTA: x", "Action: failed"]


# Web pages, Markdown, delimited text


def test_cells_that_span_several_are_repeated_and_tables_inside_follow(tmp_path: Path) -> None:
    page = b"""<table><tr><th rowspan=2>Name</th><th colspan=2>Sizes</th></tr><tr><th>S</th><th>L</th></tr>
    <tr><td rowspan=2>A</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>
    <table border=1><tr><td>Outer<table><tr><td>i1</td><td>i2</td></tr></table></td><td>b</td></tr><tr><td>c</td>
    <td>d</td></tr></table>"""
    assert read(tmp_path, "a.html", page).of(Category.TABLE) == [
        "Name | Sizes | Sizes\nName | S | L\nA | 1 | 2\nA | 3 | 4",
        "Outer | b\nc | d",
        "i1 | i2",
    ]


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td><div>a</div></td><td><div>b</div></td></tr><tr><td><div>c</div></td><td>d</td></tr></table>",
        "<table><tr><th><div>a</div><div></div></th><th><ul><li>b</li></ul></th></tr>"
        "<tr><td>c</td><td><div>d</div><div></div></td></tr></table>",
        "<table><tr hidden><td>x</td></tr><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>",
    ],
)
def test_wrapped_cells_are_cells_all_the_same(tmp_path: Path, page: str) -> None:
    assert read(tmp_path, "a.html", page.encode()).found == [("Table", "a | b\nc | d")]


def test_what_a_browser_shows_and_what_not(tmp_path: Path) -> None:
    page = """<p>seen<span style="font-size:0">unseen</span><span style="opacity: 0;">unseen</span></p><p>
    <ruby>漢<rt>kan</rt></ruby><math><mi>x</mi><mo>=</mo><mn>2</mn></math></p><svg><title>unseen</title><text>drawn</text></svg>
    <input value="typed"><input type=hidden value="unseen"><p style="font-size:0.9em">small</p>"""
    found = read(tmp_path, "a.html", f"<html><body>{page}</body></html>".encode()).text
    assert "unseen" not in found
    assert all(word in found for word in ("seen", "漢", "x=2", "drawn", "typed", "small"))


def test_what_is_chosen_in_a_list(tmp_path: Path) -> None:
    page = b"<p>Colour <select><option>red<option selected>green</select></p><select hidden><option selected>x</select>"
    assert read(tmp_path, "a.html", page).texts == ["Colour green"]


def test_tables_and_pages_in_markdown(tmp_path: Path) -> None:
    text = "a | b\n--- | ---\n1 | 2\n\n<div>in <b>HTML</b></div>\n\n> said\n> so\n\n|x|y|\n|-|:-:|\n|3||\n"
    assert read(tmp_path, "a.md", text.encode()).found == [
        ("Table", "a | b\n1 | 2"),
        ("NarrativeText", "in HTML"),
        ("NarrativeText", "said\nso"),
        ("Table", "x | y\n3 | "),
    ]


@pytest.mark.parametrize(
    ("data", "table"),
    [
        (b"sep=;\na;b\n1,5;2\n", "a | b\n1,5 | 2"),
        (b'a,b\n5" nail,1\n2,3\n', 'a | b\n5" nail | 1\n2 | 3'),
        (b'a,b\n"unclosed,1\n2,3\n', 'a | b\n"unclosed | 1\n2 | 3'),
        (b'a;b\r\n"one\r\ntwo";"x ""y"""\r\n', 'a | b\none two | x "y"'),
        (b"a,b\n1,\x002\n", "a | b\n1 | 2"),
        ("a,b\none\u2028two,2\n".encode(), "a | b\none two | 2"),
        (b"\xef\xbb\xbfa,b,c\n1,2\n3,4,5,6\n", "a | b | c\n1 | 2\n3 | 4 | 5 | 6"),
    ],
)
def test_delimited_text_with_the_usual_faults(tmp_path: Path, data: bytes, table: str) -> None:
    assert read(tmp_path, "a.csv", data).of(Category.TABLE) == [table]


# Office


def test_errors_formulas_dates_and_numbers_of_a_workbook(tmp_path: Path) -> None:
    cells = """<row r="1"><c r="A1" t="e"><v>#DIV/0!</v></c><c r="B1" s="1"><v>36000</v></c>
    <c r="C1" s="2"><v>1.5</v></c></row>
    <row r="2"><c r="A2"><f>SUM(B1:B2)</f></c><c r="B2" t="str"><f>X()</f><v>kept</v></c>
    <c r="C2"><f>A1</f><v></v></c></row>
    <row r="3"><c r="A3"><v>0.30000000000000004</v></c><c r="B3"><v>1E-7</v></c><c r="C3"><v>5E+16</v></c></row>"""
    (since_1900,) = read(tmp_path, "a.xlsx", traps.workbook(cells)).of(Category.TABLE)
    assert (
        since_1900 == "#DIV/0! | 1998-07-24 | 36:00:00\n=SUM(B1:B2) | kept | =A1\n0.3 | 0.0000001 | 50000000000000000"
    )
    (since_1904,) = read(tmp_path, "a.xlsx", traps.workbook(cells, book='<workbookPr date1904="1"/>')).of(
        Category.TABLE
    )
    assert "2002-07-25" in since_1904


def test_what_is_printed_above_and_below_a_sheet(tmp_path: Path) -> None:
    edges = '&amp;L&amp;"Arial,Bold"&amp;14Harbour &amp;&amp; Sons&amp;C&amp;A&amp;RPage &amp;P'
    members = formats.zipped(formats.workbook({"S": [["a"]]}))
    sheet = members["xl/worksheets/s0.xml"].decode()
    ends = f"<headerFooter><oddHeader>{edges}</oddHeader><evenHeader>{edges}</evenHeader></headerFooter></worksheet>"
    data = formats.package({**members, "xl/worksheets/s0.xml": sheet.replace("</worksheet>", ends)})
    found = read(tmp_path, "a.xlsx", data)
    assert found.found == [("Title", "S"), ("Table", "a"), ("Header", "Harbour & Sons | Page")]


def test_what_stands_beside_the_cells_of_a_workbook(tmp_path: Path) -> None:
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    drawn = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    targets = [("comments", "../comments1.xml"), ("drawing", "../drawings/drawing1.xml")]
    members = {
        "xl/worksheets/_rels/s0.xml.rels": formats.relations(targets),
        "xl/comments1.xml": f'<comments {names}><commentList><comment ref="B2"><text><r><t>Check </t></r>'
        "<r><t>this</t></r></text></comment></commentList></comments>",
        "xl/drawings/drawing1.xml": f"<x {drawn}><a:p><a:r><a:t>Drawn words</a:t></a:r></a:p></x>",
        "xl/drawings/_rels/drawing1.xml.rels": formats.relations([("chart", "../charts/chart1.xml")]),
        "xl/charts/chart1.xml": traps.chart(["May", "June"], {"2023": [1.5, 2.0], "2024": [3, 4]}),
    }
    cells = '<row r="1"><c r="A1"><v>1</v></c></row>'
    found = read(tmp_path, "a.xlsx", traps.workbook(cells, members=members, state='state="hidden"')).found
    assert found == [
        ("Title", "Data"),
        ("Table", "1"),
        ("UncategorizedText", "This sheet is hidden."),
        ("NarrativeText", "Drawn words"),
        ("FigureCaption", "Chart: Rain by month"),
        ("Table", " | 2023 | 2024\nMay | 1.5 | 3\nJune | 2 | 4"),
        ("UncategorizedText", "Comment on B2: Check this"),
    ]


MATH = (
    '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>E=m</m:t></m:r><m:sSup><m:e>'
    "<m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup><m:r><m:t>+</m:t></m:r><m:f><m:num><m:r>"
    "<m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b+1</m:t></m:r></m:den></m:f></m:oMath>"
)


def test_equations_hidden_words_symbols_and_merged_cells_of_word(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Energy: ")
    paragraph._p.append(parse_xml(MATH))
    paragraph = document.add_paragraph()
    paragraph.add_run("unseen ").font.hidden = True
    paragraph.add_run("seen ")
    paragraph._p.append(parse_xml(f'<w:r {nsdecls("w")}><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>'))
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    path = tmp_path / "a.docx"
    document.save(str(path))
    assert read(tmp_path, "a.docx", path.read_bytes()).texts == [
        "Energy: E=mc^2+a/(b+1)",
        "seen ✓",
        "wide | wide | 02\n10 | 11 | tall\n20 | 21 | tall",
    ]


def test_charts_and_diagrams_on_slides(tmp_path: Path) -> None:
    diagram = """<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"
    xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>
    First step</a:t></a:r></a:p></dgm:t></dgm:pt>
    <dgm:pt type="pres"><dgm:t><a:p><a:r><a:t>scaffold</a:t></a:r></a:p></dgm:t></dgm:pt>
    </dgm:ptLst></dgm:dataModel>"""
    data = formats.presentation(
        [("One", ["text"])],
        beside={
            "charts/chart1.xml": ("chart", traps.chart(["a"], {"s": [1]})),
            "diagrams/data1.xml": ("diagramData", diagram),
        },
    )
    found = read(tmp_path, "a.pptx", data)
    assert found.texts[-3:] == ["Chart: Rain by month", " | s\na | 1", "First step"]


def test_comments_and_covered_cells_of_open_document(tmp_path: Path) -> None:
    note = "<office:annotation><text:p>a remark</text:p></office:annotation>"
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    rows = (
        cell.format(' table:number-columns-spanned="2"', "wide") + "<table:covered-table-cell/>" + cell.format("", "c"),
        cell.format(' table:number-rows-spanned="2"', "tall") + "<table:table-cell/>" + cell.format("", "3"),
        "<table:covered-table-cell/>" + cell.format("", "4") + cell.format("", "5"),
    )
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    text = formats.open_document(f"<text:p>Text{note} goes on</text:p><table:table>{table}</table:table>")
    assert read(tmp_path, "a.odt", text).texts == [
        "Text goes on",
        "a remark",
        "wide | wide | c\ntall |  | 3\ntall | 4 | 5",
    ]
    row = f'<table:table-row><table:table-cell office:value-type="string">{note}<text:p>v</text:p></table:table-cell>'
    sheet = f'<table:table table:name="S">{row}</table:table-row></table:table>'
    plain = formats.open_document(sheet, kind="spreadsheet")
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = read(tmp_path, "a.ods", formats.package({**members, "META-INF/manifest.xml": "<m/>"}))
    assert found.texts == ["S", "v", "Comment: a remark"]


def test_tables_inside_tables_titles_and_edges_of_open_document(tmp_path: Path) -> None:
    def table(*cells: str) -> str:
        inside = "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
        return f"<table:table><table:table-row>{inside}</table:table-row></table:table>"

    inner = table("<text:p>1</text:p>", "<text:p>2</text:p>")
    text = formats.open_document(table(f"<text:p>left</text:p>{inner}", "<text:p>right</text:p>"))
    edge = '<s:header xmlns:s="{0}style:1.0"><t:p xmlns:t="{0}text:1.0">Harbour log</t:p></s:header>'
    edges = edge.format("urn:oasis:names:tc:opendocument:xmlns:")
    found = read(tmp_path, "a.odt", formats.changed(text, {"styles.xml": f"<a>{edges}{edges}</a>"}))
    assert found.found == [("Table", "left | right"), ("Table", "1 | 2"), ("Header", "Harbour log")]
    named = 'xmlns:p="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" p:class="title"'
    frame = f"<drawing:frame {named}><drawing:text-box><text:p>High</text:p><text:p>tide</text:p></drawing:text-box>"
    slides = formats.open_document(f"<drawing:page>{frame}</drawing:frame></drawing:page>", kind="presentation")
    assert read(tmp_path, "a.odp", slides).found == [("Title", "High tide")]
