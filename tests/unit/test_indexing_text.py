"""Passages, tokens and the words that are searched by: pure functions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apps.files.indexing.embedder import Embedder
from apps.files.indexing.lexical import prepare
from apps.files.indexing.passages import MAX_BOXES, MAX_TOKENS, TARGET_TOKENS, cut, with_context
from apps.files.indexing.tokens import estimate_tokens
from tests.factories import documents

CATEGORIES = ["Title", "NarrativeText", "ListItem", "Table", "Header", "PageNumber", "CodeSnippet"]


def element(category: str, text: str, **extra: Any) -> dict[str, Any]:
    return {"category": category, "text": text, **extra}


def with_lines(category: str, lines: list[str], top: float = 0.1) -> dict[str, Any]:
    text, boxes = " ".join(lines), []
    at = 0
    for row, line in enumerate(lines):
        y = min(top + row * 0.001, 0.99)
        boxes.append([at, at + len(line), 0.1, y, 0.9, y + 0.001])
        at += len(line) + 1
    return element(category, text, box=[0.1, top, 0.9, 0.999], lines=boxes)


def random_page(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    page = []
    for number in range(chance.randint(1, 25)):
        category = chance.choice(CATEGORIES)
        lines = documents.sentences(chance.choice([1, 1, 2, 5, 60]), seed=seed * 100 + number)
        made = with_lines(category, lines) if chance.random() < 0.7 else element(category, " ".join(lines))
        if category == "Title":
            made["level"] = chance.randint(1, 3)
        page.append(made)
    return page


@pytest.mark.parametrize("seed", range(60))
def test_passages_hold_every_word_once_in_order_and_are_of_size(seed: int) -> None:
    page = random_page(seed)
    drafts = cut(page, [])
    kept = [item["text"] for item in page if item["category"] not in ("Header", "PageNumber", "Footer")]
    assert " ".join(draft.text for draft in drafts).split() == " ".join(kept).split()
    for draft in drafts:
        assert draft.text == draft.text.strip() != ""
        # A carried heading may come on top of an element that is taken whole.
        assert estimate_tokens(draft.text) <= MAX_TOKENS + 160
        assert len(draft.boxes) <= MAX_BOXES
        assert all(0 <= x0 <= x1 <= 1 and 0 <= y0 <= y1 <= 1 for x0, y0, x1, y1 in draft.boxes)


@pytest.mark.parametrize("seed", range(30))
def test_boxes_are_those_of_the_lines_inside(seed: int) -> None:
    """Each line has a box of its own; a passage has the boxes of exactly the lines whose words it holds."""
    chance = random.Random(seed)
    lines = [
        f"line{number}x " + " ".join(documents.sentences(1, seed=number)) for number in range(chance.randint(1, 90))
    ]
    drafts = cut([with_lines("NarrativeText", lines)], [])
    place = 0
    for draft in drafts:
        held = [line for line in lines if line.split()[0] in draft.text.split()]
        assert len(draft.boxes) == len(held)
        assert [round((box[1] - 0.1) / 0.001) for box in draft.boxes] == list(range(place, place + len(held)))
        place += len(held)
    assert place == len(lines)


def test_size_is_about_four_hundred_tokens() -> None:
    page = [element("NarrativeText", text) for text in documents.sentences(120, seed=9)]
    drafts = cut(page, [])
    assert len(drafts) > 3
    assert all(0.8 * TARGET_TOKENS < draft.token_count <= TARGET_TOKENS for draft in drafts[:-1])


def test_headings_begin_passages_and_make_the_path() -> None:
    long = " ".join(documents.sentences(14, seed=2))
    page = [
        element("NarrativeText", "carried on from the page before"),
        element("Title", "Costs", level=2),
        element("NarrativeText", long),
        element("Title", "Energy", level=3),
        element("NarrativeText", long),
        element("Title", "Staff", level=2),
        element("NarrativeText", long),
    ]
    drafts = cut(page, [[1, "Report"], [2, "Income"]])
    assert [draft.heading for draft in drafts] == [
        "Report > Income", "Report > Costs > Energy", "Report > Staff",
    ]  # fmt: skip
    assert drafts[0].text.startswith("carried on")
    assert "Costs" in drafts[0].text  # too short before it to stand alone
    assert drafts[1].text.startswith("Energy")


def test_a_heading_goes_with_what_it_heads() -> None:
    page = [
        element("NarrativeText", "word " * 380),
        element("Title", "Next part", level=1),
        element("NarrativeText", "word " * 380),
    ]
    drafts = cut(page, [])
    assert [draft.text.startswith("Next part") for draft in drafts] == [False, True]


def test_passages_are_found_on_the_page_as_they_are() -> None:
    """Without furniture between, a passage's text is a stretch of the page's text, which a viewer can mark."""
    page = [element("NarrativeText", text) for text in documents.sentences(60, seed=3)]
    whole = "\n\n".join(item["text"] for item in page)
    assert all(draft.text in whole for draft in cut(page, []))


def test_nothing_comes_of_nothing() -> None:
    assert cut([], []) == []
    assert cut([element("Header", "Report 2024"), element("PageNumber", "7")], [[1, "x"]]) == []


def test_context_is_said_once() -> None:
    assert with_context("Report > Costs", "Costs\n\nThey rose.") == "Report\nCosts\n\nThey rose."
    assert with_context("Report > Costs", "They rose.") == "Report > Costs\nThey rose."
    assert with_context("Costs", "Costs\n\nThey rose.") == "Costs\n\nThey rose."
    assert with_context("", "They rose.") == "They rose."


@pytest.mark.parametrize(
    "text",
    [
        " ".join(documents.sentences(20, seed=5)),
        "The committee considered whether the reorganisation of departments had been appropriate. " * 10,
        "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 10,
        "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 10,
        "def getUserName(user_id: int) -> str:\n    return self._names[user_id]\n" * 10,
    ],
)
def test_estimates_are_near_the_tokenizer(text: str, embedder: Embedder) -> None:
    real = embedder.count(text)
    assert 0.5 * real <= estimate_tokens(text) <= 1.8 * real


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder()


# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Café Zürich naïve", "Cafe Zurich naive"),
        ("getUserName", "getUserName get User Name"),
        ("parse_http_url", "parse_http_url parse http url"),
        ("HTTPServer", "HTTPServer HTTP Server"),
        ("snake_case and CamelCase", "snake_case snake case and CamelCase Camel Case"),
        ("Word ordinary USA 2024", "Word ordinary USA 2024"),
        ("a.b/c:d", "a b c d"),
        ("東京都", "東京 京都"),
        ("x東京y", "x 東京 y"),
        ("한국어", "한국 국어"),
        ("nul\x00byte", "nul byte"),
    ],
)
def test_prepare(text: str, words: str) -> None:
    assert prepare(text).split() == words.split()


@pytest.mark.parametrize("part", ["_", "aA", "A", "a_", "猫", "{[(", "a", "_a_", "1a"])
def test_prepare_takes_no_more_than_a_moment(part: str) -> None:
    import time

    started = time.process_time()
    prepare(part * 30_000)
    assert time.process_time() - started < 2


def test_vectors_have_length_one_and_know_what_is_alike(embedder: Embedder) -> None:
    cat, kitten, tax = (
        embedder.embed(text) for text in ("a cat sleeps", "the kitten is napping", "income tax was raised")
    )
    assert float(cat @ cat) == pytest.approx(1, abs=1e-4)
    assert float(cat @ kitten) > float(cat @ tax) + 0.2


def test_any_text_has_a_vector(embedder: Embedder) -> None:
    for text in ("", " ", "\x00", "[CLS] [SEP]", "x" * 100_000, "\ud800".encode("utf-8", "replace").decode()):
        assert embedder.embed(text).shape == (384,)
