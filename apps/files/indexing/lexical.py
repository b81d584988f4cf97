"""The one preparation of text for keyword search, used for passages and for questions alike.

Postgres stems and drops stop words (one configuration for every language: the two sides must only agree).
Here accents are folded, identifiers also split into their parts, and scripts without spaces cut into pairs.
"""

from __future__ import annotations

import re
import unicodedata

CONFIGURATION = "english"
MAX_CHARS = 60_000
"""Beyond this a passage's or question's text is not indexed; passages are about 2,000 characters."""
LEXEME_MAX_CHARS = 64

_MARKS = re.compile("[\u0300-\u036f]+")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_SPLITTABLE = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[^\W_]_[^\W_]")
_WORD = re.compile(r"\w+")
_LONGEST_WORD = 200
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_JOINED = re.compile(r"[/\\@:.=&?#~+|<>{}\[\]()\"'`,;!*%^$-]+")


def _pairs(found: re.Match[str]) -> str:
    run = found.group()
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join(run[index : index + 2] for index in range(len(run) - 1)) + " "


def _with_parts(found: re.Match[str]) -> str:
    word = found.group()
    if len(word) > _LONGEST_WORD or not _SPLITTABLE.search(word):
        return word
    return f"{word} {' '.join(_PARTS.findall(word))}"


def prepare(text: str) -> str:
    """`text` as plain words with spaces between, for `to_tsvector`."""
    text = text[:MAX_CHARS]
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text)  # Hangul was taken apart too
        text = _CJK_RUN.sub(_pairs, text)
    # Punctuation would make the parser see hosts, paths, versions and signed numbers instead of words.
    text = _JOINED.sub(" ", text).replace("\x00", " ")
    return _WORD.sub(_with_parts, text) if _SPLITTABLE.search(text) else text
