"""The language of each element: told by script and common words, not guessed where there is too little."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.files.extraction import PageRecord, main_language
from apps.files.extraction.language import language_of
from tests.reading import read

TEXTS = {
    "en": "The ship left the harbour at noon and was not seen again.",
    "de": "Das Schiff verließ den Hafen am Mittag und wurde nicht mehr gesehen.",
    "fr": "Le navire quitta le port à midi et ne fut plus revu par les gens.",
    "es": "El barco salió del puerto al mediodía y no se volvió a ver.",
    "it": "La nave lasciò il porto a mezzogiorno e non fu più vista da nessuno.",
    "pt": "O navio saiu do porto ao meio-dia e não foi mais visto na costa.",
    "nl": "Het schip verliet de haven om twaalf uur en is niet meer gezien.",
    "pl": "Statek opuścił port w południe i nie był więcej widziany.",
    "ru": "Корабль вышел из гавани в полдень, и больше его не видели.",
    "uk": "Корабель вийшов із гавані опівдні, і його більше не бачили.",
    "ar": "الباخرة غادرت الميناء ظهرا",
    "ja": "船は正午に港を出た。",
    "zh": "这是中文文本的例子",
    "ko": "한국어 문장입니다",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items())
def test_a_sentence_tells_its_language(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text", ["", "Table 3", "ISO 9001:2015", "12.5 | 7", "Ж", "x = a[1] + b", "Lorem ipsum dolor sit amet"]
)
def test_too_little_tells_nothing(text: str) -> None:
    assert language_of(text) == ""


def test_it_is_kept_with_the_element(tmp_path: Path) -> None:
    (page,) = read(tmp_path, "a.txt", f"{TEXTS['en']}\n\n{TEXTS['de']}\n\n{TEXTS['de']}\n\nTable 3".encode()).pages
    assert [element.language for element in page.elements] == ["en", "de", "de", None]
    stored = page.elements_json()
    assert PageRecord.elements_of_json(stored) == page.elements
    assert (main_language(stored), main_language([])) == ("de", None)


def test_code_has_none(tmp_path: Path) -> None:
    (page,) = read(tmp_path, "a.py", f"# {TEXTS['en']}\n".encode()).pages
    assert page.elements[0].language is None
