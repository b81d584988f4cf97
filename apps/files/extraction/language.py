"""The language of a text, by its script and its commonest words: cheap enough for every element.

Where a text is too short, or two languages fit it alike, the answer is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from apps.files.extraction.types import Category, Element

_LOOKED_AT = 200  # characters
_LEAST_LETTERS, _LEAST_WORDS = 12, 2
_SHARE = 0.14  # of the words; of running text a third and more are such
_AHEAD = 1.25  # times as many as the next language has
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]"), 0.1),
    ("ko", re.compile("[\uac00-\ud7a3\u1100-\u11ff]"), 0.3),
    ("zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"), 0.5),
    ("el", re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), 0.5),
    ("he", re.compile("[\u0590-\u05ff]"), 0.5),
    ("th", re.compile("[\u0e00-\u0e7f]"), 0.5),
    ("hi", re.compile("[\u0900-\u097f]"), 0.5),
    ("km", re.compile("[\u1780-\u17ff]"), 0.5),
    ("ka", re.compile("[\u10a0-\u10ff]"), 0.5),
    ("hy", re.compile("[\u0530-\u058f]"), 0.5),
)
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_UKRAINIAN, _PERSIAN = re.compile("[іїєґ]"), re.compile("[پچژگ]")
_COMMON = {
    "en": "the of and to in is that it was for on are with as be this have from or by not but which you an at they",
    "de": "der die das und ist in zu den von mit nicht ein eine auf für im dem des sich auch es sie wird als werden",
    "fr": "le la les de des et est un une du dans que qui pour pas sur plus avec au par sont il elle ce cette ne nous",
    "es": "el la los las de del y que en es un una por con para se no su al lo como más pero sus este esta son",
    "it": "il lo la gli le di del della e che è un una per non con si in da sono nel alla come più anche questo dei",
    "pt": "o a os as de do da dos das e que em um uma é para não com se por no na mais como foi ao são sua",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als bij door wordt naar maar uit deze",
    "sv": "och i att det som en på är av för med till den har inte ett om de var vi kan från men så",
    "da": "og i at det som en på er af for med til den har ikke et om de var vi kan fra men så blev også",
    "no": "og i at det som en på er av for med til den har ikke et om de var vi kan fra men så ble også",
    "fi": "ja on ei se että oli hän mutta ovat kun joka niin tai myös ole sen kuin voi ovat",
    "pl": "i w na z się do nie to jest że o jak po za od dla przez są przy ale tym które być oraz",
    "cs": "a v na se je že do s z to o pro jako ve by ale i po za jsou který nebo při",
    "hu": "a az és hogy nem is egy ez van meg volt de csak már vagy mint kell lesz ki",
    "ro": "de și în la a cu pe nu din este care un o că mai pentru sau al fi sunt prin",
    "tr": "ve bir bu da de için ile olarak çok daha olan en gibi kadar ne var ise olduğu sonra",
    "vi": "và của là có trong cho không được các một những với người đã để này khi từ",
    "id": "dan yang di untuk dengan dari ini itu pada tidak dalam akan adalah ke oleh atau juga",
}  # fmt: skip


@lru_cache(maxsize=1)
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, words in _COMMON.items():
        for word in dict.fromkeys(words.split()):
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


def language_of(text: str) -> str:
    """Two letters (ISO 639-1), or nothing when it cannot be told."""
    text = text[:_LOOKED_AT]
    if not text.isascii() and (found := _by_script(text)) is not None:
        return found
    words = _WORD.findall(text.lower())
    if len(words) < 4:
        return ""
    known = _languages_by_word()
    counts: dict[str, int] = {}
    for word in words:
        for language in known.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    best, *others = sorted(counts, key=lambda language: -counts[language]) or [""]
    if not best or counts[best] < max(_LEAST_WORDS, _SHARE * len(words)):
        return ""
    return best if not others or counts[best] >= _AHEAD * counts[others[0]] else ""


def with_languages(elements: Iterable[Element]) -> tuple[Element, ...]:
    """The elements with the language of each, where it can be told. Code has none."""
    return tuple(
        replace(element, language=language)
        if element.category is not Category.CODE_SNIPPET and (language := language_of(element.text))
        else element
        for element in elements
    )


def main_language(elements: Iterable[Mapping[str, Any]]) -> str | None:
    """The language that most characters of stored elements are in."""
    weights: dict[str, int] = {}
    for element in elements:
        if language := element.get("language"):
            weights[language] = weights.get(language, 0) + len(element["text"])
    return max(weights, key=lambda language: weights[language]) if weights else None


def _by_script(text: str) -> str | None:
    """None where the script says nothing, as the Latin one."""
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return None
    found = ""
    for language, script, share in _SCRIPTS:
        if len(script.findall(text)) >= share * letters:
            found = language
            break
    else:
        if len(_CYRILLIC.findall(text)) >= 0.5 * letters:
            found = "uk" if _UKRAINIAN.search(text.lower()) else "ru" if re.search("[ыэё]", text.lower()) else ""
        elif len(_ARABIC.findall(text)) >= 0.5 * letters:
            found = "fa" if _PERSIAN.search(text) else "ar"
        else:
            return None
    least = 4 if found in ("ja", "ko", "zh") else _LEAST_LETTERS
    return found if letters >= least else ""
