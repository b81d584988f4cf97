"""A person's files in a real browser, with scripted answers: a password, a table asked in SQL, a claim that its source
does not hold, a summary, a deletion taken back and one that is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.steps import EMAIL, PASSWORD, READ_MS, ask, finished, shot, sign_up, until_newest_file
from tests.factories import documents
from tests.services import Services
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SALES = b"region,revenue\nNorth,1200\nSouth,800\nEast,450\n"
FACT = documents.FACTS[0]


@pytest.fixture(scope="module")
def product(services: Services) -> Iterator[Stack]:
    """Web, runner, worker and a scripted replica."""
    with Stack(services, workers=1, settings="tests.e2e.settings") as stack:
        yield stack


def upload(page: Page, name: str, kind: str, data: bytes) -> None:
    page.goto("/files")
    page.locator("input[type=file]").first.set_input_files({"name": name, "mimeType": kind, "buffer": data})
    expect(page.get_by_role("list", name="Your files")).to_contain_text(name)


def opened(page: Page, name: str) -> Locator:
    """The dialog of a file."""
    page.goto("/files")
    page.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).click()
    return page.get_by_role("dialog")


def test_there_is_nothing_yet(page: Page) -> None:
    sign_up(page, EMAIL, PASSWORD)
    page.goto("/files")
    expect(page.get_by_role("heading", name="No files yet")).to_be_visible()
    shot(page, "files-empty")


def test_a_protected_file_is_opened_with_its_password(page: Page) -> None:
    upload(page, "contract.pdf", "application/pdf", documents.encrypted_pdf())
    until_newest_file(page, "file.state === 'needs_password'")
    dialog = opened(page, "contract.pdf")
    field = dialog.get_by_label("Password of the file")
    field.fill("a guess")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog).to_contain_text("does not open")
    shot(page, "files-password")
    field.fill("open sesame")
    dialog.get_by_role("button", name="Open").click()
    until_newest_file(page, "file.state === 'ready'")
    expect(dialog.get_by_role("button", name=re.compile("^Page 1, ready"))).to_be_visible()
    expect(field).to_have_count(0)


def test_a_table_answers_sql(page: Page) -> None:
    upload(page, "sales.csv", "text/csv", SALES)
    until_newest_file(page, "file.state === 'ready'")
    dialog = opened(page, "sales.csv")
    dialog.get_by_role("region", name="Tables").get_by_role("button").first.click()
    expect(dialog.get_by_role("region", name="Rows of sales")).to_contain_text("South")
    box = dialog.get_by_role("textbox", name="SQL")
    box.fill("SELECT sum(revenue) AS total FROM sales")
    box.press("Control+Enter")
    expect(dialog.get_by_role("region", name="Answer")).to_contain_text(re.compile("2,?450"))
    shot(page, "files-sql")
    box.fill("SELECT sum(profit) FROM sales")
    dialog.get_by_role("button", name="Run").click()
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(dialog).to_contain_text("profit")


def test_what_a_source_does_not_hold_is_marked(page: Page) -> None:
    upload(page, "expedition.pdf", "application/pdf", documents.mixed_pdf(3, scanned=(), facts=[FACT]))
    until_newest_file(page, "file.state === 'ready'")
    opened(page, "expedition.pdf").get_by_role("button", name="Ask about it").click()
    answer = ask(page, f"{FACT.question}\nsay: {FACT.sentence} [1] It weighed 98765 kilograms. [1]")
    finished(answer)
    sources = answer.get_by_role("group", name="Sources")
    expect(sources).to_contain_text("Not found in this source: 98765")
    shot(page, "files-unsupported")
    sources.get_by_role("button", name=re.compile("expedition.pdf")).click()
    region = page.get_by_role("region", name=f"Page {FACT.page}")
    expect(region.get_by_test_id("passage").first).to_be_visible(timeout=READ_MS)


def test_a_summary_names_its_pages(page: Page) -> None:
    dialog = opened(page, "expedition.pdf")
    dialog.get_by_role("button", name=re.compile("Summar")).click()
    expect(dialog.get_by_role("region", name="Summary")).to_contain_text("Made from all 3 pages", timeout=READ_MS)
    shot(page, "files-summary")


def test_a_deletion_can_be_taken_back_until_it_is_done(page: Page) -> None:
    names = page.get_by_role("list", name="Your files")
    page.goto("/files")
    for undo in (True, False):
        page.get_by_role("button", name="Actions for sales.csv").click()
        page.get_by_role("menuitem", name="Delete").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(names).not_to_contain_text("sales.csv")
        if undo:
            page.get_by_role("button", name="Undo").click()
            expect(names).to_contain_text("sales.csv")
    page.goto("/files")
    expect(names).to_contain_text("contract.pdf")
    expect(names).not_to_contain_text("sales.csv")
