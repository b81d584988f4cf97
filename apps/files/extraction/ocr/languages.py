"""Which of tesseract's language packs read a page: those that are installed and fit its script or its language."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from functools import lru_cache

_PACKS = {
    "en": "eng", "de": "deu", "fr": "fra", "es": "spa", "it": "ita", "pt": "por", "nl": "nld", "sv": "swe", "da": "dan",
    "no": "nor", "fi": "fin", "pl": "pol", "cs": "ces", "hu": "hun", "ro": "ron", "tr": "tur", "vi": "vie", "id": "ind",
    "ru": "rus", "uk": "ukr", "el": "ell", "he": "heb", "ar": "ara", "fa": "fas", "hi": "hin", "th": "tha", "km": "khm",
    "ka": "kat", "hy": "hye", "ja": "jpn", "ko": "kor", "zh": "chi_sim",
}  # fmt: skip
_SCRIPTS = {
    "Cyrillic": ("rus", "ukr"),
    "Greek": ("ell",),
    "Hebrew": ("heb",),
    "Arabic": ("ara", "fas"),
    "Devanagari": ("hin",),
    "Thai": ("tha",),
    "Khmer": ("khm",),
    "Georgian": ("kat",),
    "Armenian": ("hye",),
    "Japanese": ("jpn",),
    "Korean": ("kor",),
    "Hangul": ("kor",),
    "Han": ("chi_sim", "chi_tra"),
}
"""By the names that tesseract's own detection gives them; the Latin script says nothing."""
BASE = "eng"


@lru_cache(maxsize=1)
def installed(program: str) -> frozenset[str]:
    """The packs that tesseract has; none when it does not answer."""
    try:
        listed = subprocess.run([program, "--list-langs"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(listed.stdout.decode("utf-8", "replace").split("\n")[1:]) - {"", "osd"}


def of_script(program: str, script: str) -> tuple[str, ...]:
    """Packs for a script by tesseract's name for it; none when it is Latin, unknown or not installed."""
    return _with_base(pack for pack in _SCRIPTS.get(script, ()) if pack in installed(program))


def of_language(program: str, language: str | None) -> tuple[str, ...]:
    """Packs for a language of two letters (ISO 639-1); none when it is unknown or not installed."""
    pack = _PACKS.get(language or "", "")
    return _with_base([pack] if pack in installed(program) else [])


def _with_base(packs: Iterable[str]) -> tuple[str, ...]:
    found = tuple(packs)
    return found if not found or BASE in found else (*found, BASE)
