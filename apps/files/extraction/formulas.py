"""Equations of Office documents (OMML) in a line of text, as one would type them: c^(2), a/b, sqrt(x)."""

from __future__ import annotations

from typing import Any

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
MATHS = frozenset({f"{M}oMath", f"{M}oMathPara"})
_MAX_DEPTH = 60
_PROPERTIES = ("Pr",)


def _part(node: Any, name: str, depth: int) -> str:
    found = node.find(f"{M}{name}")
    return linear(found, depth + 1) if found is not None else ""


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _fraction(node: Any, depth: int) -> str:
    return f"{_grouped(_part(node, 'num', depth))}/{_grouped(_part(node, 'den', depth))}"


def _scripts(node: Any, depth: int) -> str:
    below, above = _part(node, "sub", depth), _part(node, "sup", depth)
    base = _part(node, "e", depth)
    return base + (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")


def _root(node: Any, depth: int) -> str:
    degree = _part(node, "deg", depth)
    sign = f"root[{degree}]" if degree else "sqrt"
    return f"{sign}({_part(node, 'e', depth)})"


def _character(node: Any, name: str, properties: str, usual: str) -> str:
    found = node.find(f"{M}{properties}/{M}{name}")
    return usual if found is None else found.get(f"{M}val", "")


def _operator(node: Any, depth: int) -> str:
    below, above = _part(node, "sub", depth), _part(node, "sup", depth)
    sign = _character(node, "chr", "naryPr", "\u222b")
    bounds = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    return f"{sign}{bounds} {_part(node, 'e', depth)}"


def _fenced(node: Any, depth: int) -> str:
    begin, end = _character(node, "begChr", "dPr", "("), _character(node, "endChr", "dPr", ")")
    inner = _character(node, "sepChr", "dPr", "|").join(linear(part, depth + 1) for part in node.iterfind(f"{M}e"))
    return f"{begin}{inner}{end}"


def _matrix(node: Any, depth: int) -> str:
    rows = (" ".join(linear(cell, depth + 1) for cell in row.iterfind(f"{M}e")) for row in node.iterfind(f"{M}mr"))
    return f"[{'; '.join(rows)}]"


_FORMS = {
    f"{M}f": _fraction,
    f"{M}sSup": _scripts,
    f"{M}sSub": _scripts,
    f"{M}sSubSup": _scripts,
    f"{M}rad": _root,
    f"{M}nary": _operator,
    f"{M}d": _fenced,
    f"{M}m": _matrix,
}


def linear(node: Any, depth: int = 0) -> str:
    """The text of an equation, or of a part of one."""
    if depth > _MAX_DEPTH or not isinstance(node.tag, str):
        return ""
    if node.tag == f"{M}t":
        return node.text or ""
    if node.tag in _FORMS:
        return _FORMS[node.tag](node, depth)
    return "".join(linear(child, depth + 1) for child in node if not str(child.tag).endswith(_PROPERTIES))
