"""Numbers that Word counts and does not write: those of lists and of numbered headings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = f"{W}val"
_LEVELS = 9
_MOST = 32_767  # what Word counts to
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def _roman(number: int) -> str:
    letters = ""
    for value, sign in _ROMAN:
        letters += sign * (number // value)
        number %= value
    return letters


def _letters(number: int) -> str:
    """a to z, then aa to zz, as Word goes on."""
    return chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1) if number > 0 else ""


def _ideographs(number: int, digits: str, units: tuple[str, ...]) -> str:
    """A number below ten thousand as Chinese and Japanese write it."""
    text = ""
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if digit:
            text += digits[digit] + units[power]
        elif text and not text.endswith(digits[0]):
            text += digits[0]
    text = text.removesuffix(digits[0]) if text else digits[0]
    return text[1:] if text.startswith("一十") else text


_COUNTED = ("〇一二三四五六七八九", ("", "十", "百", "千"))
_LEGAL = ("零壹贰叁肆伍陆柒捌玖", ("", "拾", "佰", "仟"))
_IDEOGRAPHS = {
    **dict.fromkeys(("chineseCounting", "chineseCountingThousand", "taiwaneseCounting", "japaneseCounting"), _COUNTED),
    **dict.fromkeys(("taiwaneseCountingThousand", "koreanCounting", "ideographDigital"), _COUNTED),
    "chineseLegalSimplified": _LEGAL,
}
_ROWS = {
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "ganada": "가나다라마바사아자차카타파하",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЭЮЯ",
}
_WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


def _written(number: int, form: str) -> str:
    if form in ("lowerLetter", "upperLetter", "lowerRoman", "upperRoman"):
        text = _letters(number) if form.endswith("Letter") else _roman(number)
        return text.upper() if form.startswith("upper") else text
    if form in _IDEOGRAPHS and number < 10_000:
        return _ideographs(number, *_IDEOGRAPHS[form])
    if form in _ROWS and 0 < number <= len(_ROWS[form]):
        return _ROWS[form][number - 1]
    if form == "decimalFullWidth":
        return str(number).translate(_WIDE)
    return f"{number:02}" if form == "decimalZero" else str(number)


def _number(node: Any, default: int = 0) -> int:
    value = (node.get(_VALUE) or "") if node is not None else ""
    return min(int(value), _MOST) if value.isascii() and value.isdigit() else default


@dataclass(frozen=True, slots=True)
class Place:
    """A list by its number, 0 where a paragraph is taken out of any, and the level in it."""

    number: str
    level: int


@dataclass(slots=True)
class _Level:
    start: int = 1
    form: str = "decimal"
    pattern: str = ""
    plain: bool = False  # all the numbers in digits, as in laws

    @classmethod
    def of(cls, node: Any) -> _Level:
        form, pattern = node.find(f"{W}numFmt"), node.find(f"{W}lvlText")
        return cls(
            _number(node.find(f"{W}start")),
            (form.get(_VALUE) or "") if form is not None else "decimal",
            (pattern.get(_VALUE) or "")[:100] if pattern is not None else "",
            node.find(f"{W}isLgl") is not None,
        )


@dataclass(slots=True)
class _List:
    """A list as it is described; `abstract` is what several lists may count together."""

    abstract: str
    levels: dict[int, _Level]
    restarts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Counts the paragraphs of a document, which must be asked about in their order."""

    def __init__(self, root: Any | None) -> None:
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, dict[int, int]] = {}
        if root is None:
            return
        described = {
            str(node.get(f"{W}abstractNumId")): {
                _at(level): _Level.of(level) for level in node.iterfind(f"{W}lvl") if _at(level) < _LEVELS
            }
            for node in root.iterfind(f"{W}abstractNum")
        }
        for node in root.iterfind(f"{W}num"):
            abstract = node.find(f"{W}abstractNumId")
            name = str(abstract.get(_VALUE)) if abstract is not None else ""
            found = self._lists[str(node.get(f"{W}numId"))] = _List(name, dict(described.get(name, {})))
            for change in node.iterfind(f"{W}lvlOverride"):
                if (level := change.find(f"{W}lvl")) is not None:
                    found.levels[_at(change)] = _Level.of(level)
                if (start := change.find(f"{W}startOverride")) is not None:
                    found.restarts[_at(change)] = _number(start)

    def next(self, place: Place | None) -> str:
        """What stands before the next paragraph there; nothing for a bullet."""
        found = self._lists.get(place.number) if place is not None else None
        if place is None or found is None or place.level not in found.levels:
            return ""
        level = place.level
        counts = self._counts.setdefault(found.abstract, {})
        start = found.restarts.pop(level, None)
        if start is not None:
            counts[level] = start
        else:
            counts[level] = counts[level] + 1 if level in counts else found.levels[level].start
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        return self._label(found, level, counts)

    def _label(self, found: _List, level: int, counts: dict[int, int]) -> str:
        own = found.levels[level]
        if own.form in ("bullet", "none"):
            return ""
        text = own.pattern
        for at in range(level + 1):
            form = found.levels.get(at, _Level())
            number = counts.get(at, form.start)
            text = text.replace(f"%{at + 1}", _written(number, "decimal" if own.plain else form.form))
        return text


def _at(node: Any) -> int:
    value = node.get(f"{W}ilvl") or ""
    return int(value) if value.isascii() and value.isdigit() and len(value) == 1 else _LEVELS


def place_of(properties: Any | None) -> Place | None:
    """Where the properties of a paragraph or of a style count it."""
    node = properties.find(f"{W}numPr") if properties is not None else None
    if node is None:
        return None
    number, level = node.find(f"{W}numId"), node.find(f"{W}ilvl")
    name = str(number.get(_VALUE)) if number is not None else ""
    return Place(name, min(_number(level), _LEVELS - 1))
