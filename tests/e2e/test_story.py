"""A stranger's first quarter of an hour, in a real browser against a real model.

One story in order: every step leaves the product as the next one needs it.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.steps import (
    ANSWER_MS,
    EMAIL,
    PASSWORD,
    PHONE,
    ask,
    ask_until_cited,
    context_of_last_run,
    finished,
    shot,
    shown,
    sign_up,
    stored,
    until_newest_file,
    words,
)
from tests.factories import documents
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_the_first_account_becomes_the_operator(page: Page) -> None:
    sign_up(page, EMAIL, PASSWORD)
    me = page.evaluate("fetch('/api/me').then(r => r.json())")
    assert me["user"]["is_operator"] is True
    shot(page, "empty")


def test_an_answer_streams_from_the_real_model(page: Page) -> None:
    answer = ask(page, "Say in one or two sentences what a lighthouse is for.")
    text = finished(answer)
    assert len(text) > 20
    answer.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="About this answer").click()
    details = page.get_by_role("dialog", name="About this answer")
    expect(details.get_by_role("list", name="Why")).to_contain_text("SmolLM2 135M")
    expect(details).to_contain_text("Tokens a second")
    shot(page, "details")
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}"))
    shot(page, "answer")


def test_a_reload_and_a_second_tab_show_the_same_answer(page: Page, context: BrowserContext) -> None:
    ask(page, "Write a long story about a sailor who repairs a lighthouse.")
    expect(page.get_by_role("article", name="Answer").last).to_contain_text(
        re.compile(r"\w+ \w+ \w+"), timeout=ANSWER_MS
    )
    page.reload()
    second = context.new_page()
    second.goto(page.url)
    one, other = (tab.get_by_role("article", name="Answer").last for tab in (page, second))
    for answer in (one, other):
        finished(answer)
    messages = stored(page)
    for answer in (one, other):
        assert shown(answer) == words(messages[-1]["text"])
    assert sum(message["role"] == "user" for message in messages) == 2
    second.close()


def test_the_answer_goes_on_while_the_network_and_the_server_are_away(page: Page, product: Stack) -> None:
    answer = ask(page, "Write another long story, about the sea and a village.")
    expect(answer).to_contain_text(re.compile(r"\w+ \w+"), timeout=ANSWER_MS)
    page.context.set_offline(True)
    page.wait_for_timeout(1_500)
    page.context.set_offline(False)
    product.kill9("web-1")
    product.kill9("runner-1")
    product.restart("runner-1")
    product.restart("web-1")
    finished(answer)
    messages = stored(page)
    assert messages[-1]["status"] in ("completed", "incomplete")
    assert shown(answer) == words(messages[-1]["text"])
    assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))


def test_a_document_is_asked_about_while_it_is_read(page: Page) -> None:
    page.get_by_role("link", name="New conversation").or_(
        page.get_by_role("button", name="New conversation")
    ).first.click()
    page.locator("input[type=file]").first.set_input_files(
        {"name": "expedition.pdf", "mimeType": "application/pdf", "buffer": documents.mixed_pdf(12)}
    )
    expect(page.get_by_role("list", name="Attached files")).to_contain_text("expedition.pdf")
    until_newest_file(page, "0 < file.pages_ready && file.pages_ready < file.page_count")
    first = documents.FACTS[0]
    answer = ask(page, first.question)
    finished(answer)
    context = context_of_last_run(page)
    assert any(first.sentence in passage["text"] for passage in context["passages"])
    shot(page, "document")


def test_a_scanned_page_is_answered_with_a_citation_that_opens_it(page: Page) -> None:
    until_newest_file(page, "file.state === 'ready'")
    scanned = documents.FACTS[1]
    source = ask_until_cited(page, scanned)
    context = context_of_last_run(page)
    given = next(passage for passage in context["passages"] if scanned.answer.lower() in passage["text"].lower())
    assert given["page"] == scanned.page
    assert given["source"] == "ocr"
    expect(source).to_be_visible()
    source.click()
    opened = page.get_by_role("region", name=f"Page {scanned.page}")
    expect(opened.get_by_role("img").first).to_be_visible(timeout=30_000)
    # The passage is marked once the picture is there.
    expect(opened.get_by_text("Loading the page")).to_have_count(0)
    expect(opened.get_by_test_id("passage").first).to_be_visible()
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
