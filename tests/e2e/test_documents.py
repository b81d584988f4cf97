"""A document in the story: asked about while it is read, then about a scanned page whose citation opens it.

Run by name (`make test ARGS="-m journey"`): it needs an engine quick enough to answer several long prompts.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.steps import EMAIL, PASSWORD, PHONE, READ_MS, ask, ask_until_cited, context_of_last_run, finished, shot
from tests.factories import documents
from tests.stack import Stack

pytestmark = [pytest.mark.journey, pytest.mark.timeout(900)]


def test_a_person_signs_up(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").first.fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("textbox", name="Your question")).to_be_visible()


def test_a_document_is_asked_about_while_it_is_read(page: Page) -> None:
    page.get_by_role("link", name="New conversation").or_(
        page.get_by_role("button", name="New conversation")
    ).first.click()
    page.locator("input[type=file]").first.set_input_files(
        {"name": "expedition.pdf", "mimeType": "application/pdf", "buffer": documents.mixed_pdf(12)}
    )
    expect(page.get_by_role("list", name="Attached files")).to_contain_text("expedition.pdf")
    page.wait_for_function(
        "() => fetch('/api/files').then(r => r.json()).then(b => b.results.some(f => f.pages_ready > 0))",
        timeout=READ_MS,
        polling=500,
    )
    first = documents.FACTS[0]
    answer = ask(page, first.question)
    finished(answer)
    context = context_of_last_run(page)
    assert any(first.sentence in passage["text"] for passage in context["passages"])
    shot(page, "document")


def test_a_scanned_page_is_answered_with_a_citation_that_opens_it(page: Page) -> None:
    page.wait_for_function(
        "() => fetch('/api/files').then(r => r.json()).then(b => b.results[0].state === 'ready')",
        timeout=READ_MS,
        polling=500,
    )
    scanned = documents.FACTS[3]
    source = ask_until_cited(page, scanned)
    context = context_of_last_run(page)
    given = next(passage for passage in context["passages"] if scanned.answer.lower() in passage["text"].lower())
    assert given["page"] == scanned.page
    assert given["source"] == "ocr"
    expect(source).to_be_visible()
    source.click()
    opened = page.get_by_role("region", name=f"Page {scanned.page}")
    expect(opened.get_by_role("img").first).to_be_visible(timeout=30_000)
    shot(page, "citation")
    page.keyboard.press("Escape")


def test_it_fits_a_phone_in_the_dark(page: Page, browser: Browser, product: Stack) -> None:
    state = page.context.storage_state()
    phone = browser.new_context(
        viewport=PHONE, base_url=product.url(), storage_state=state, color_scheme="dark", has_touch=True
    )
    tab = phone.new_page()
    tab.goto(page.url)
    expect(tab.get_by_role("article", name="Answer").last).to_be_visible()
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shot(tab, "phone-dark")
    phone.close()
