"""What a person does on the page, in the words of the tests."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.e2e.conftest import SHOTS
from tests.factories import documents

EMAIL, PASSWORD = "operator@example.org", "four plain words here"
DESKTOP: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
ANSWER_MS = 180_000
READ_MS = 180_000
expect.set_options(timeout=20_000)


def shot(tab: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=SHOTS / f"{name}.png")


def sign_up(tab: Page, email: str, password: str) -> None:
    """As the first person on a new installation."""
    tab.goto("/")
    expect(tab.get_by_role("heading", name="Create the operator account")).to_be_visible()
    shot(tab, "sign-up")
    tab.get_by_label("Email").fill(email)
    tab.get_by_label("Password").first.fill(password)
    tab.get_by_role("button", name="Create account").click()
    expect(tab.get_by_role("textbox", name="Your question")).to_be_visible()


def ask(tab: Page, text: str) -> Locator:
    """Send a question; returns the article of its answer."""
    answers = tab.get_by_role("article", name="Answer")
    before = answers.count()
    box = tab.get_by_role("textbox", name="Your question")
    box.fill(text)
    # Not before the files of the question have been uploaded.
    expect(tab.get_by_role("button", name="Send")).to_be_enabled()
    box.press("Enter")
    expect(answers).to_have_count(before + 1)
    return answers.last


def until_newest_file(tab: Page, condition: str) -> None:
    """Wait for `condition`, in JavaScript, on the `file` that was uploaded last."""
    for _ in range(READ_MS // 200):
        newest = "fetch('/api/files').then(r => r.json()).then(({results: [file]}) => Boolean(file)"
        if tab.evaluate(f"{newest} && {condition})"):
            return
        tab.wait_for_timeout(200)
    pytest.fail(f"the file did not come to {condition}")


def shown(answer: Locator) -> list[str]:
    """The words of an answer's text on the page."""
    return words(answer.get_by_test_id("answer").inner_text())


def words(text: str) -> list[str]:
    """Letters only: marks and numbers of lists are drawn otherwise than they are written."""
    return re.findall(r"[^\W\d_]+", text)


def stored(tab: Page) -> list[dict[str, Any]]:
    """The messages of the conversation on screen, as the server has them."""
    path = "`/api/conversations/${location.pathname.split('/')[2]}/messages`"
    found: list[dict[str, Any]] = tab.evaluate(f"fetch({path}).then(r => r.json())")["results"]
    return found


def finished(answer: Locator) -> str:
    expect(answer).not_to_have_attribute("aria-busy", "true", timeout=ANSWER_MS)
    return answer.inner_text()


def ask_until_cited(tab: Page, fact: documents.Fact) -> Locator:
    """The chip of the fact's page. The packaged model does not answer well each time; when it does, it is cited."""
    chip = tab.get_by_role("button", name=re.compile(rf"page {fact.page}\b"))
    quoting = f"{fact.question} Quote the sentence from the document."
    for question in (fact.question, quoting) * 3:
        answer = ask(tab, question)
        finished(answer)
        if answer.locator(chip).count():
            return answer.locator(chip).first
    pytest.fail(f"six answers without page {fact.page} among their sources")


def context_of_last_run(tab: Page) -> dict[str, list[dict[str, Any]]]:
    """What the model was sent for the last answer of the conversation on screen."""
    found: dict[str, list[dict[str, Any]]] = tab.evaluate(
        """async () => {
            const id = location.pathname.split('/')[2]
            const tree = await (await fetch(`/api/conversations/${id}/messages`)).json()
            const run = tree.results.filter(m => m.role === 'assistant').at(-1).run_id
            return await (await fetch(`/api/runs/${run}/context`)).json()
        }"""
    )
    return found
