"""Text, Markdown and Word: encodings, structure, pages."""

from __future__ import annotations

import codecs
import random
from pathlib import Path

import pytest

from apps.files.extraction import PageRecord, run
from apps.files.extraction.assemble import clean, page_text
from apps.files.extraction.paging import PAGE_CHARS, cut_pages, split_text
from apps.files.extraction.plain import decode
from apps.files.extraction.types import Category, Element, Kind
from tests.factories import documents

SAMPLE = "Zürich, naïve façade — “quoted” Ωmega. " * 4


@pytest.mark.parametrize(
    "data",
    [
        SAMPLE.encode("utf-8"),
        codecs.BOM_UTF8 + SAMPLE.encode("utf-8"),
        codecs.BOM_UTF16_LE + SAMPLE.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + SAMPLE.encode("utf-16-be"),
        SAMPLE.encode("utf-16-le"),
        SAMPLE.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + SAMPLE.encode("utf-32-le"),
    ],
)
def test_unicode_in_any_form(data: bytes) -> None:
    assert decode(data) == SAMPLE


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Die Größe der Straße überrascht alle Gäste des Hauses. " * 5, "cp1252"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5, "cp1251"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 5, "shift_jis"),
    ],
)
def test_older_encodings_are_recognised(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_what_cannot_be_decoded_is_replaced_and_the_rest_kept() -> None:
    assert "kept" in decode(b"\xff\xfe\x00\x00" + b"k\0\0\0e\0\0\0p\0\0\0t\0\0\0" + b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("plain", "plain"),
        ("  two  spaces ", "two spaces"),
        ("e\u0301", "é"),
        ("\ufb01sh o\ufb03ce", "fish office"),
        ("soft\u00adhyphen", "softhyphen"),
        ("a\u00a0b\u200bc", "a bc"),
        ("nul\x00 bell\x07", "nul bell"),
        ("\ud800", "\ufffd"),
        ("\ufe8d\ufedf", "\u0627\u0644"),
    ],
)
def test_clean(raw: str, wanted: str) -> None:
    assert clean(raw) == wanted


def read(tmp_path: Path, data: bytes, kind: Kind) -> list[PageRecord]:
    path = tmp_path / "input"
    path.write_bytes(data)
    pages: list[PageRecord] = []
    document = run(path, kind, on_page=pages.append)
    assert [page.number for page in pages] == list(range(1, document.page_count + 1))
    return pages


MARKDOWN = """---
author: someone
---
# First

A paragraph
over two lines.

Second
------

- item one
  goes on
- item two

1. numbered

| a | b |
|---|---|
| 1 | 2 |

```python
# not a heading

x = a[1]
```

### Third ###
> a quotation
***
"""


def test_markdown_structure(tmp_path: Path) -> None:
    (page,) = read(tmp_path, MARKDOWN.encode(), "markdown")
    found = [(element.category.value, element.level, element.text) for element in page.elements]
    assert found == [
        ("UncategorizedText", None, "author: someone"),
        ("Title", 1, "First"),
        ("NarrativeText", None, "A paragraph\nover two lines."),
        ("Title", 2, "Second"),
        ("ListItem", None, "- item one\n  goes on"),
        ("ListItem", None, "- item two"),
        ("ListItem", None, "1. numbered"),
        ("Table", None, "a | b\n1 | 2"),
        ("CodeSnippet", None, "# not a heading\n\nx = a[1]"),
        ("Title", 3, "Third"),
        ("NarrativeText", None, "a quotation"),
    ]
    assert page.text == page_text(page.elements)
    assert all(element.box is None for element in page.elements)


def test_an_unclosed_fence_is_code_to_the_end(tmp_path: Path) -> None:
    (page,) = read(tmp_path, b"```\n# code\n\nmore", "markdown")
    assert [element.category for element in page.elements] == [Category.CODE_SNIPPET]


def test_text_is_cut_at_paragraphs_and_nothing_is_lost(tmp_path: Path) -> None:
    paragraphs = documents.sentences(400, seed=4)
    pages = read(tmp_path, "\r\n\r\n".join(paragraphs).encode(), "text")
    assert len(pages) > 5
    assert all(len(page.text) <= PAGE_CHARS * 1.5 for page in pages)
    assert "\n\n".join(page.text for page in pages) == "\n\n".join(paragraphs)


def test_headings_in_force_are_carried_to_the_next_page(tmp_path: Path) -> None:
    body = "# Book\n\n## Part\n\n" + "\n\n".join(["word " * 150] * 12) + "\n\n## Next\n\nend"
    pages = read(tmp_path, body.encode(), "markdown")
    assert pages[0].headings == ()
    assert all([heading.text for heading in page.headings] == ["Book", "Part"] for page in pages[1:-1])
    assert pages[-1].elements[-2].text == "Next"


def test_word_paragraphs_lists_and_tables_in_order(tmp_path: Path) -> None:
    pages = read(tmp_path, documents.word(["First paragraph.", "Second paragraph."]), "docx")
    text = "\n".join(page.text for page in pages)
    assert text.index("First paragraph.") < text.index("Second paragraph.")
    categories = {element.category for page in pages for element in page.elements}
    assert Category.TITLE in categories


def test_word_tables_merged_cells_and_nesting(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("Figures", level=2)
    table = document.add_table(rows=2, cols=3)
    for row, cells in enumerate((("a", "b", "c"), ("1", "2", "3"))):
        for column, value in enumerate(cells):
            table.cell(row, column).text = value
    table.cell(0, 0).merge(table.cell(0, 1))
    inner = table.cell(1, 2).add_table(rows=1, cols=1)
    inner.cell(0, 0).text = "inside"
    document.add_paragraph("after", style="List Bullet")
    document.save(str(tmp_path / "made.docx"))
    (page,) = read(tmp_path, (tmp_path / "made.docx").read_bytes(), "docx")
    found = [(element.category.value, element.level, element.text) for element in page.elements]
    assert found == [
        ("Title", 2, "Figures"),
        ("Table", None, "a b | a b | c\n1 | 2 | 3 inside"),
        ("ListItem", None, "after"),
    ]


# Cutting


def element(chance: random.Random) -> Element:
    category = chance.choice([Category.TITLE, Category.NARRATIVE_TEXT, Category.LIST_ITEM, Category.TABLE])
    size = chance.choice([1, 20, 300, 2_000, 12_000])
    words = " ".join("".join(chance.choices("abcdefgh", k=chance.randint(1, 12))) for _ in range(size // 6 + 1))
    return Element(category, words[:size].strip() or "x", level=1 if category is Category.TITLE else None)


@pytest.mark.parametrize("seed", range(40))
def test_pages_hold_every_word_once_in_order(seed: int) -> None:
    chance = random.Random(seed)
    elements = [element(chance) for _ in range(chance.randint(1, 40))]
    pages = cut_pages(elements)
    before = " ".join(item.text for item in elements).split()
    after = " ".join(page.text for page in pages).split()
    assert "".join(before) == "".join(after)
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        assert page.text == page_text(page.elements)
        titles = sum(len(item.text) + 2 for item in page.elements if item.category is Category.TITLE)
        assert 0 < len(page.text) <= 4_500 + titles


@pytest.mark.parametrize("seed", range(30))
def test_split_text_keeps_all_but_space(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices("ab .\n?!。", k=chance.randint(1, 3_000)))
    limit = chance.randint(5, 200)
    parts = list(split_text(text, limit))
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
