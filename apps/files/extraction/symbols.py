"""Characters of fonts that show signs under the codes of letters: Symbol and Wingdings."""

from __future__ import annotations

_CAPITALS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_SMALL = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_SYMBOL = {
    **{ord("A") + at: letter for at, letter in enumerate(_CAPITALS)},
    **{ord("a") + at: letter for at, letter in enumerate(_SMALL)},
    0x22: "∀", 0x24: "∃", 0x2D: "−", 0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓",
    0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡",
    0xBB: "≈", 0xC6: "∅", 0xC7: "∩", 0xC8: "∪", 0xCC: "⊂", 0xCE: "∈", 0xCF: "∉", 0xD1: "∇", 0xD5: "∏", 0xD6: "√",
    0xD7: "⋅", 0xD8: "¬", 0xD9: "∧", 0xDA: "∨", 0xDB: "⇔", 0xDE: "⇒", 0xE5: "∑", 0xF2: "∫",
}  # fmt: skip
_WINGDINGS = {
    0x6C: "●", 0x6E: "■", 0x6F: "\u2610", 0x71: "❑", 0x76: "❖", 0xA7: "▪", 0xA8: "\u2610", 0xD8: "➢", 0xDF: "←",
    0xE0: "→", 0xE8: "➔", 0xFB: "\u2717", 0xFC: "\u2713", 0xFD: "\u2612", 0xFE: "\u2611",
}  # fmt: skip
_PRIVATE = range(0xF000, 0xF100)  # where Office puts the codes of such fonts


def shown(text: str, font: str) -> str:
    """What `text` shows in `font`; what is known of neither its sign nor its letter is left out."""
    name = font.lower()
    if name == "symbol":
        return "".join(_SYMBOL.get(_code(letter), letter if ord(letter) < 0x80 else "") for letter in text)
    if name.startswith("wingdings"):
        signs = _WINGDINGS if name == "wingdings" else {}
        return "".join(signs.get(_code(letter), letter if letter == " " else "") for letter in text)
    return text


def _code(letter: str) -> int:
    code = ord(letter)
    return code - _PRIVATE.start if code in _PRIVATE else code
