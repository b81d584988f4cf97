"""Every kind without pages of its own, through the real child: what is read of it, in which order, and as what."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from apps.files.extraction import Document, ExtractionFailed, PageRecord, Reason, ocr_page, run
from apps.files.extraction.image import pixels
from apps.files.extraction.types import Category, Kind
from apps.files.scanning import inspect
from tests.factories import documents, formats, ole

NO_SOCKET = "/nonexistent/clamd.ctl"


@dataclass
class Read:
    document: Document
    pages: list[PageRecord]

    @property
    def found(self) -> list[tuple[str, str]]:
        return [(element.category.value, element.text) for page in self.pages for element in page.elements]

    @property
    def text(self) -> str:
        return "\n".join(page.text for page in self.pages)


def read(folder: Path, data: bytes, kind: Kind) -> Read:
    """As the product does it: the check of what it is, then the child."""
    path = folder / "object"
    path.write_bytes(data)
    inspect(path, kind, clamd_socket=NO_SOCKET)
    pages: list[PageRecord] = []
    return Read(run(path, kind, on_page=pages.append), pages)


def failure(folder: Path, data: bytes, kind: Kind) -> Reason:
    (folder / "object").write_bytes(data)
    with pytest.raises(ExtractionFailed) as failed:
        run(folder / "object", kind, on_page=lambda page: None)
    return failed.value.reason


# Web pages, mail, books


def test_a_web_page(tmp_path: Path) -> None:
    page = b"""<!doctype html><html><head><title>Tides</title><meta charset="iso-8859-1"><style>p{}</style></head><body>
    <nav><a href="/">Home</a></nav><h1>The <b>tides</b></h1><p>High water\n at <i>no</i>on.</p><p hidden>not this</p>
    <div style="display: none">nor this</div><script>nor(this)</script><ul><li>ebb</li><li>fl\xf6d</li></ul>
    <table><caption>Heights</caption><tr><th>Place</th><th>m</th></tr><tr><td>North\n pier</td><td>4.2</td></tr></table>
    <table role="presentation"><tr><td><h2>Inside</h2><p>a layout</p></td></tr></table><pre>a = 1\n  b</pre>
    <footer>Contact</footer></body></html>"""
    found = read(tmp_path, page, "html")
    assert found.document.title == "Tides"
    assert found.found == [
        ("Header", "Home"),
        ("Title", "The tides"),
        ("NarrativeText", "High water at noon."),
        ("ListItem", "ebb"),
        ("ListItem", "flöd"),
        ("FigureCaption", "Heights"),
        ("Table", "Place | m\nNorth pier | 4.2"),
        ("Title", "Inside"),
        ("NarrativeText", "a layout"),
        ("CodeSnippet", "a = 1\n  b"),
        ("Footer", "Contact"),
    ]


def test_a_mail_with_its_attachments(tmp_path: Path) -> None:
    inner = formats.mail("Inner", "the inner text", attachments={"notes.txt": b"attached to the attached"})
    data = formats.mail(
        "Größe", "plain", html="<p>in <b>HTML</b></p>",
        attachments={
            "facts.csv": b"a,b\n1,2\n", "inner.eml": inner, "program.exe": b"MZ\0\0",
            "report.pdf": documents.short_pdf(1),
        },
    )  # fmt: skip
    found = read(tmp_path, data, "eml")
    assert found.found[:3] == [
        ("Title", "Größe"),
        ("UncategorizedText", "From: Ada <ada@example.org>\nTo: Bob <bob@example.org>"),
        ("NarrativeText", "in HTML"),
    ]
    assert ("Table", "a | b\n1 | 2") in found.found
    assert "the inner text" in found.text
    assert "attached to the attached" in found.text
    named = [text for category, text in found.found if text.startswith("Attachment")]
    assert named == [
        f"Attachment: {name}" for name in ("facts.csv", "inner.eml", "notes.txt", "program.exe", "report.pdf")
    ]
    assert found.document.notices == ("parts_unread",)


def test_mails_in_mails_are_read_to_a_bounded_depth(tmp_path: Path) -> None:
    assert "the innermost text" in read(tmp_path, formats.forwarded(3), "eml").text
    found = read(tmp_path, formats.forwarded(30), "eml")
    assert "text 30" in found.text
    assert "text 27" in found.text
    assert "text 26" not in found.text
    assert found.document.notices == ("depth_limited",)


def test_an_outlook_message(tmp_path: Path) -> None:
    inner = ole.message({0x0037: "Inner subject", 0x1000: "inner body"})
    data = ole.message(
        {0x0037: "格式測試", 0x1000: "First.\r\n\r\nSecond.", 0x0C1A: "Ada", 0x0E04: "Bob"},
        {"inner.msg": inner, "data.csv": b"x;y\n1,5;2\n"},
    )
    found = read(tmp_path, data, "msg")
    assert found.document.title == "格式測試"
    assert found.found == [
        ("Title", "格式測試"),
        ("UncategorizedText", "From: Ada\nTo: Bob"),
        ("NarrativeText", "First."),
        ("NarrativeText", "Second."),
        ("Title", "Attachment: inner.msg"),
        ("Title", "Inner subject"),
        ("NarrativeText", "inner body"),
        ("Title", "Attachment: data.csv"),
        ("Table", "x | y\n1,5 | 2"),
    ]


def test_a_book_has_a_page_a_chapter(tmp_path: Path) -> None:
    found = read(tmp_path, formats.book(["<h1>One</h1><p>first</p>", "<h1>Two</h1><p>second</p>"]), "epub")
    assert found.document.title == "A book"
    assert [page.text for page in found.pages] == ["One\n\nfirst", "Two\n\nsecond"]


# Office


def test_a_presentation_has_a_page_a_slide(tmp_path: Path) -> None:
    slides = [("First", ["alpha", "beta"]), ("", []), ("Third", ["gamma"])]
    data = formats.presentation(slides, notes="say this", table=[["Site", "Depth"], ["North", "4.2"]])
    found = read(tmp_path, data, "pptx")
    assert [page.text for page in found.pages] == [
        "First\n\nalpha\n\nbeta\n\n1\n\nSite | Depth\nNorth | 4.2\n\nsay this",
        "2",
        "Third\n\ngamma\n\n3",
    ]
    assert ("Title", "First") in found.found
    assert ("Footer", "1") in found.found


def test_sheets_and_their_tables(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Name", "Sum"],
        ["a", 123456789012345],
        ["b", 0.5],
        [None],
        ["x", "y", None, "beside"],
        [1.0, True, None, 7],
    ]
    found = read(tmp_path, formats.workbook({"Figures": rows, "Empty": [], "More": [["z"]]}), "sheet")
    assert found.found == [
        ("Title", "Figures"),
        ("Table", "Name | Sum\na | 123456789012345\nb | 0.5"),
        ("Table", "x | y\n1 | True"),
        ("Table", "beside\n7"),
        ("Title", "Empty"),
        ("Title", "More"),
        ("Table", "z"),
    ]
    assert [page.text.split("\n")[0] for page in found.pages] == ["Figures", "Empty", "More"]


@pytest.mark.parametrize(
    "data",
    [
        "Name;Größe\nn1;1,5\n".encode("utf-16"),
        "Name;Größe\r\nn1;1,5\r\n".encode("cp1252"),
        "Name\tGröße\nn1\t1,5\n".encode(),
        'Name|Größe\n"n1"|1,5\n'.encode(),
    ],
)
def test_delimited_text_in_any_encoding(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data, "csv").found == [("Table", "Name | Größe\nn1 | 1,5")]


def test_open_document_text(tmp_path: Path) -> None:
    body = (
        '<text:h text:outline-level="2">Findings</text:h><text:p>Deep<text:s/>water<text:note><text:note-citation>1'
        "</text:note-citation><text:note-body><text:p>a note</text:p></text:note-body></text:note> here</text:p>"
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        "<text:list><text:list-item><text:p>rope</text:p></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>Site</text:p></table:table-cell><table:table-cell>"
        "<text:p>4.2</text:p></table:table-cell></table:table-row></table:table>"
    )
    assert read(tmp_path, formats.open_document(body), "odt").found == [
        ("Title", "Findings"),
        ("NarrativeText", "Deep water here"),
        ("NarrativeText", "a note"),
        ("ListItem", "rope"),
        ("Table", "Site | 4.2"),
    ]


def test_open_document_slides(tmp_path: Path) -> None:
    box = "<drawing:text-box><text:p>{}</text:p></drawing:text-box>"
    page = f"<drawing:page><drawing:frame>{box}</drawing:frame></drawing:page>"
    body = page.format("one") + page.format("two")
    found = read(tmp_path, formats.open_document(body, kind="presentation"), "odp")
    assert [page.text for page in found.pages] == ["one", "two"]


RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Times;}{\f1\fcharset128 MS Mincho;}}
{\stylesheet{\s0 Normal;}{\s7 heading 2;}}{\*\generator Nobody;}{\headery720 }{\header page head\par}
\pard\s7 The caf\'e9\par\pard\plain Plain \b bold\b0  and {\f1\'83\'5d\'83\'8b} \u8364?5.{\footnote a note\par} On.\par
{\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt a link}}\par
\trowd\intbl Site\cell Depth\cell\row\trowd\intbl North\cell 4.2\cell\row\pard after\par}"""


def test_rich_text(tmp_path: Path) -> None:
    assert read(tmp_path, RTF, "rtf").found == [
        ("Header", "page head"),
        ("Title", "The café"),
        ("NarrativeText", "a note"),
        ("NarrativeText", "Plain bold and ゾル €5. On."),
        ("NarrativeText", "a link"),
        ("Table", "Site | Depth\nNorth | 4.2"),
        ("NarrativeText", "after"),
    ]


IN_TABLE, ROW_ENDS = b"\x16\x24\x01", b"\x17\x24\x01"
NORMAL, HEADING_2 = b"\0\0", b"\2\0"


def test_word_of_before_2007(tmp_path: Path) -> None:
    data = ole.word(
        [
            ("Findings\r", HEADING_2),
            ("Deep \x13 HYPERLINK x \x14water\x15.\r", NORMAL),
            ("Site\x07", NORMAL + IN_TABLE),
            ("\x07", NORMAL + IN_TABLE),
            ("4.2\x07", NORMAL + IN_TABLE),
            ("\x07", NORMAL + IN_TABLE + ROW_ENDS),
            ("after 格\r", NORMAL),
        ]
    )
    assert read(tmp_path, data, "doc").found == [
        ("Title", "Findings"),
        ("NarrativeText", "Deep water."),
        ("Table", "Site |  | 4.2"),
        ("NarrativeText", "after 格"),
    ]


def test_powerpoint_of_before_2007(tmp_path: Path) -> None:
    found = read(tmp_path, ole.slides([("First", "one\rtwo"), ("Second", "three")]), "ppt")
    assert [page.text for page in found.pages] == ["First\n\none\n\ntwo", "Second\n\nthree"]


def test_word_notes_headers_and_what_is_embedded(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_comment(document.add_paragraph("body").runs, text="a comment")
    document.sections[0].header.paragraphs[0].text = "on every page"
    document.save(str(tmp_path / "made.docx"))
    found = read(tmp_path, (tmp_path / "made.docx").read_bytes(), "docx")
    assert found.found == [("NarrativeText", "body"), ("NarrativeText", "a comment"), ("Header", "on every page")]


# Archives, code, pictures


def test_an_archive_reads_what_is_inside(tmp_path: Path) -> None:
    data = formats.package(
        {"a/notes.md": "# Notes\n\ntext", "b.csv": "x,y\n1,2\n", "__MACOSX/b": "litter", "c.bin": b"\0"}
    )
    found = read(tmp_path, data, "zip")
    assert found.found == [
        ("Title", "Attachment: a/notes.md"),
        ("Title", "Notes"),
        ("NarrativeText", "text"),
        ("Title", "Attachment: b.csv"),
        ("Table", "x | y\n1 | 2"),
        ("Title", "Attachment: c.bin"),
    ]
    assert found.document.notices == ("parts_unread",)


def test_archives_in_archives_are_read_to_a_bounded_depth(tmp_path: Path) -> None:
    found = read(tmp_path, formats.archive_in_itself(20), "zip")
    assert "note 20" in found.text
    assert "note 10" not in found.text
    assert found.document.notices == ("depth_limited",)


def test_code_is_kept_as_it_is(tmp_path: Path) -> None:
    found = read(tmp_path, b"def f():\n    return 1\n\n\ndef g():\n    pass\n", "code")
    assert found.found == [("CodeSnippet", "def f():\n    return 1"), ("CodeSnippet", "def g():\n    pass")]


def test_every_page_of_a_tiff(tmp_path: Path) -> None:
    data = formats.tiff([documents.scan([f"This is page number {n}."], noise=False) for n in (1, 2)])
    found = read(tmp_path, data, "image")
    assert [page.needs_ocr for page in found.pages] == [True, True]
    assert "number 2" in ocr_page(tmp_path / "object", "image", 2).text


@pytest.mark.parametrize("form", ["WEBP", "TIFF", "GIF", "BMP"])
def test_other_pictures(tmp_path: Path, form: str) -> None:
    buffer = io.BytesIO()
    documents.scan(["Seventeen mules."], width=900, height=600, noise=False).save(buffer, form)
    assert read(tmp_path, buffer.getvalue(), "image").document.page_count == 1


def _shades(picture: Image.Image) -> dict[str, Image.Image]:
    """The same picture of dark letters on white in forms that are easily turned into one shade."""
    grey = picture.convert("L")
    bright = Image.new("RGBA", picture.size, (255, 255, 255, 0))
    bright.putalpha(ImageOps.invert(grey))
    dark = Image.new("LA", picture.size, (0, 0))
    dark.putalpha(ImageOps.invert(grey))
    deep = grey.convert("I").point(lambda value: value * 256)
    return {"bright": bright, "dark": dark, "deep": deep.convert("I;16"), "lab": Image.merge("LAB", [grey] * 3)}


@pytest.mark.parametrize("form", ["bright", "dark", "deep", "lab"])
def test_letters_are_seen_on_the_ground_of_any_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)  # the child sets its own
    path = tmp_path / "a.tif"
    _shades(documents.scan(["Seventeen mules."], width=400, height=200, noise=False))[form].save(path)
    with path.open("rb") as file:
        seen, _, _ = pixels(file.fileno(), 1, max_pixels=1 << 20, longest=400, grey=True)
    shades = seen.histogram()
    assert sum(shades[:100]) > 300
    assert sum(shades[156:]) > 300


# What cannot be read


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("docx", ole.container({"EncryptedPackage": b"x" * 64}), Reason.ENCRYPTED),
        ("sheet", ole.container({"EncryptedPackage": b"x" * 64}), Reason.ENCRYPTED),
        ("doc", ole.word([("x\r", b"\0\0")], flags=0x0100), Reason.ENCRYPTED),
        ("doc", ole.container({"Other": b"x"}), Reason.DAMAGED),
        ("ppt", ole.container({"EncryptedSummary": b"x", "PowerPoint Document": b""}), Reason.ENCRYPTED),
        ("msg", ole.container({"Other": b"x"}), Reason.DAMAGED),
        ("msg", ole.container({"Other": b"x" * 9_000})[:1_500], Reason.DAMAGED),
        ("pptx", formats.package({"[Content_Types].xml": "<x/>"}), Reason.DAMAGED),
        ("epub", formats.package({"mimetype": "application/epub+zip"}), Reason.DAMAGED),
        ("odt", formats.package({"content.xml": "<broken"}), Reason.DAMAGED),
        ("rtf", b"not rich", Reason.DAMAGED),
        ("html", b"", Reason.EMPTY),
        ("eml", b"no header at all", Reason.DAMAGED),
        ("csv", b"\n\n", Reason.EMPTY),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why(tmp_path: Path, kind: Kind, data: bytes, reason: Reason) -> None:
    assert failure(tmp_path, data, kind) is reason


def test_categories_are_those_of_the_shared_vocabulary() -> None:
    assert {"Title", "NarrativeText", "ListItem", "Table", "Header", "Footer"} <= {item.value for item in Category}
