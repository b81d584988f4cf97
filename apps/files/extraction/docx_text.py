"""The visible text of one paragraph of a Word document."""

from __future__ import annotations

from typing import Any

from apps.files.extraction import formulas, symbols
from apps.files.extraction.assemble import clean
from apps.files.extraction.docx_numbers import W

BOX, FALLBACK = f"{W}txbxContent", "}Fallback"
_TEXT, _SYMBOL, _RUN, _FIELD, _VALUE = f"{W}t", f"{W}sym", f"{W}r", f"{W}fldChar", f"{W}val"
_MARKS = {
    f"{W}tab": "\t",
    f"{W}ptab": "\t",
    f"{W}br": "\n",
    f"{W}cr": "\n",
    f"{W}noBreakHyphen": "-",
}
_SILENT = frozenset(
    {BOX, *(f"{W}{name}" for name in ("del", "moveFrom", "instrText", "rPr", "pPr", "rt", "sdtPr", "ffData"))}
)
_WORD_ART = "{urn:schemas-microsoft-com:vml}textpath"
_NOT = ("0", "false", "off")


def text_of(node: Any) -> str:
    """Insertions are part of the text, deletions, field codes and text boxes are not. Iterative, so that deep nesting
    cannot end the interpreter."""
    parts: list[str] = []
    stack = [iter(node)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            continue
        written = _written(child)
        if written is not None:
            parts.append(written)
        elif _holds_text(child):
            stack.append(iter(child))
    return "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part.replace("\t", " "))))


def _written(node: Any) -> str | None:
    """What a node without further nodes of text stands for."""
    if node.tag == _TEXT:
        return symbols.shown(node.text or "", _font(node))
    if node.tag == _SYMBOL:
        return _symbol(node)
    if node.tag == _FIELD:
        return _filled(node)
    if node.tag == _WORD_ART:
        return node.get("string") or ""
    if node.tag in formulas.MATHS:
        return f" {formulas.linear(node)} "
    return _MARKS.get(node.tag)


def _holds_text(node: Any) -> bool:
    tag = node.tag
    if not isinstance(tag, str) or tag in _SILENT or tag.endswith(FALLBACK):
        return False
    return not (tag == _RUN and _is_on(node.find(f"{W}rPr/{W}vanish")))


def _is_on(mark: Any | None) -> bool:
    return mark is not None and mark.get(_VALUE, "1") not in _NOT


def _symbol(node: Any) -> str:
    """A character of a font of symbols."""
    code = (node.get(f"{W}char") or "").upper()
    try:
        value = int(code, 16)
    except ValueError:
        return ""
    font = node.get(f"{W}font") or ""
    sign = symbols.shown(chr(value), font) if 0x20 < value < 0xD800 or 0xF000 <= value < 0xF100 else ""
    return "" if "\ue000" <= sign <= "\uf8ff" else sign


def _font(text: Any) -> str:
    """The font of signs that a text is set in, if it is one."""
    run = text.getparent()
    fonts = run.find(f"{W}rPr/{W}rFonts") if run is not None else None
    return (fonts.get(f"{W}ascii") or "") if fonts is not None else ""


def _filled(node: Any) -> str:
    """The state of a box or a list in a form of old; what is typed into one is text like any other."""
    if (box := node.find(f"{W}ffData/{W}checkBox")) is not None:
        state = box.find(f"{W}checked")
        return "\u2612" if _is_on(box.find(f"{W}default") if state is None else state) else "\u2610"
    if (choice := node.find(f"{W}ffData/{W}ddList")) is None:
        return ""
    options = [option.get(_VALUE) or "" for option in choice.iterfind(f"{W}listEntry")]
    result = choice.find(f"{W}result")
    chosen = (result.get(_VALUE) or "0") if result is not None else "0"
    return options[int(chosen)] if chosen.isascii() and chosen.isdigit() and int(chosen) < len(options) else ""
