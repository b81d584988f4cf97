"""Slides and books with damaged, missing, protected or oddly named parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.files.extraction import ExtractionFailed, Reason
from tests.factories import formats
from tests.reading import read

SLIDES = formats.presentation([("One", ["first"]), ("Two", ["second"])], notes="said")  # kept as slide2 and slide1


def test_a_damaged_slide_keeps_its_place(tmp_path: Path) -> None:
    found = read(tmp_path, "a.pptx", formats.changed(SLIDES, {"ppt/slides/slide2.xml": "<p:sld"}))
    assert [page.text for page in found.pages] == ["", "Two\n\nsecond\n\n2"]
    assert found.document.notices == ("parts_unread",)
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path, "a.pptx", formats.changed(SLIDES, {f"ppt/slides/slide{number}.xml": "<" for number in (1, 2)}))
    assert failed.value.reason is Reason.DAMAGED


@pytest.mark.parametrize(
    "members",
    [
        {"ppt/notesSlides/n.xml": "<p:notes"},
        {"ppt/slides/_rels/slide2.xml.rels": "<Relationships"},
        {"ppt/slides/_rels/slide2.xml.rels": formats.relations([("chart", "NULL"), ("image", "../media/gone.png")])},
        {"docProps/core.xml": "<broken"},
    ],
)
def test_what_is_damaged_beside_a_slide_is_left_out(tmp_path: Path, members: dict[str, str]) -> None:
    assert read(tmp_path, "a.pptx", formats.changed(SLIDES, members)).texts[:3] == ["One", "first", "1"]


def test_strict_and_hidden_slides_and_templates(tmp_path: Path) -> None:
    slide = formats.zipped(SLIDES)["ppt/slides/slide1.xml"].decode()
    hidden = formats.changed(SLIDES, {"ppt/slides/slide1.xml": slide.replace("<p:sld ", '<p:sld show="0" ')})
    assert read(tmp_path, "a.potx", hidden).texts[-2:] == ["2", "This slide is hidden."]
    strict = {
        name: data.replace(b"//schemas.openxmlformats.org/", b"//purl.oclc.org/ooxml/").replace(b"/2006/", b"/")
        for name, data in formats.zipped(SLIDES).items()
        if name.startswith("ppt/")
    }
    assert "second" in read(tmp_path, "a.pptx", formats.changed(SLIDES, strict)).texts


def test_cells_of_a_slide_that_reach_over_several_are_repeated(tmp_path: Path) -> None:
    data = formats.presentation([("T", [])], table=[["wide", "", "tall"], ["1", "2", ""]])
    slide = formats.zipped(data)["ppt/slides/slide1.xml"].decode()
    empty = slide.split("wide", 1)[1].split("</a:tc>", 1)[1].split("</a:tc>", 1)[0]
    assert empty.startswith("<a:tc>")
    first, _, rest = slide.partition(empty)
    above, _, below = rest.rpartition("<a:tc>")
    wide = empty.replace("<a:tc>", '<a:tc hMerge="1">')
    merged = f'{first}{wide}{above}<a:tc vMerge="1">{below}'
    assert read(tmp_path, "a.pptx", formats.changed(data, {"ppt/slides/slide1.xml": merged})).texts[1:] == [
        "1",
        "wide | wide | tall\n1 | 2 | tall",
    ]


# Books


BOOK = formats.book(["<p>first</p>", "<p>second</p>"])


@pytest.mark.parametrize(
    "data",
    [
        formats.changed(BOOK, {"mimetype": None}),
        formats.changed(BOOK, {"book/c 1.xhtml": None, "book/C 1.XHTML": "<p>second</p>"}),
        formats.changed(
            BOOK,
            {
                "book/x.opf": "<package><manifest>"
                '<item id="a" href="c 0.xhtml#top" media-type="application/xhtml+xml"/>'
                '<item id="b" href="c 1.xhtml" media-type="text/html"/><item id="s" href="a.css"/></manifest></package>'
            },
        ),
    ],
)
def test_books_that_are_not_quite_in_order(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, "a.epub", data).texts == ["first", "second"]


@pytest.mark.parametrize(("part", "locked"), [("book/c%201.xhtml", True), ("book/font.otf", False)])
def test_a_book_that_a_shop_protects_says_so(tmp_path: Path, part: str, locked: bool) -> None:
    protection = f'<encryption xmlns="e"><CipherReference URI="{part}"/></encryption>'
    data = formats.changed(BOOK, {"META-INF/encryption.xml": protection})
    if not locked:
        assert read(tmp_path, "a.epub", data).texts == ["first", "second"]
        return
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path, "a.epub", data)
    assert failed.value.reason is Reason.LOCKED
