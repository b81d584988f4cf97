"""What a question looks like, in twelve numbers that cost no model: lengths, kinds of characters, kinds of words.

Responsible for: the numbers and their order. Leaves to `scorer` what they mean. The word lists are English: another
language shows as few common words, which `scorer` finds unfamiliar.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

CHARACTERS_READ = 4_000
"""Of a longer text only the beginning is looked at, which bounds the time."""

FEATURES = (
    "log_words",
    "words_per_sentence",
    "repeated_words",
    "common_words",
    "negations",
    "persons",
    "conditions",
    "digits",
    "symbols",
    "brackets",
    "commas",
    "quotes",
)

_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[=+*/^<>|\\{}\[\]()$%~∀∃∨⊃≡·]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = _words("not except never no false incorrect least")
PERSONS = _words("i he she his her my him they")
CONDITIONS = _words("if then when unless assume suppose given")
COMMON = _words(
    "the of and to a in is that it for was on are as with his they at be this from have or by one had not but what all"
    " were when we there can an your which their said if do will each about how up out them then she many some so these"
    " would other into has more her two like him see time could no make than first been its who now people my made over"
    " did down only way find use may"
)


def measure(text: str) -> tuple[float, ...]:
    """The values of `FEATURES`. All but the first two are shares (0..1) of words or characters."""
    text = text[:CHARACTERS_READ]
    words = _WORD.findall(text.lower())
    characters, sentences = max(1, len(text)), len(_SENTENCE_END.findall(text))
    count = max(1, len(words))
    return (
        math.log(count),
        count / (sentences + 1),
        1 - len(set(words)) / count,
        _share(words, COMMON),
        _share(words, NEGATIONS),
        _share(words, PERSONS),
        _share(words, CONDITIONS),
        len(_DIGIT.findall(text)) / characters,
        len(_SYMBOL.findall(text)) / characters,
        text.count("(") / characters,
        text.count(",") / characters,
        (text.count('"') + text.count("“")) / characters,
    )


def _share(words: Sequence[str], kind: Collection[str]) -> float:
    return sum(word in kind for word in words) / max(1, len(words))
