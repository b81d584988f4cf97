"""docs/settings.md lists the variables that are read, each once and with its default, and no other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from apps.config.env import Env
from infra.local.layout import REPOSITORY

PAGE = (REPOSITORY / "docs" / "settings.md").read_text()
ROWS = {row[1]: row[2].strip() for row in re.finditer(r"(?m)^\| `([A-Z0-9_]+)` \| ([^|]*)\| [^|]{20,} \|$", PAGE)}
# The set-up's own, and those of engines: source file -> how it names what it reads.
ELSEWHERE = {
    "inference/settings.py": r'env(?:\.get\(|\[)"(\w+)"',
    "inference/engines/factory.py": r'_positive\(environment, "(\w+)"',
    "infra/local/pieces.py": r'environ\.get\("(PARLEY_\w+)"\)',
    "infra/local/engine.py": r'environ\.get\("(PARLEY_\w+)"',
}


def defaults() -> dict[str, str]:
    """What the apps read, with the default as the page writes it."""
    found = {}
    for field in Env.model_fields.values():
        value = field.default
        if isinstance(value, Path):
            value = value.relative_to(REPOSITORY) if value.is_relative_to(REPOSITORY) else value
        name = field.validation_alias.choices[0]  # type: ignore[union-attr]
        found[str(name)] = f"{value:g}" if isinstance(value, float) else str(value)
    return found


def read_elsewhere() -> set[str]:
    return {name for path, how in ELSEWHERE.items() for name in re.findall(how, (REPOSITORY / path).read_text())}


def test_every_row_has_three_cells_and_names_a_variable_once() -> None:
    named = Counter(re.findall(r"(?m)^\| `([A-Z0-9_]+)`", PAGE))
    assert set(named) == set(ROWS)
    assert [name for name, times in named.items() if times > 1] == []


def test_the_page_lists_what_is_read_and_nothing_else() -> None:
    assert all(re.search(how, (REPOSITORY / path).read_text()) for path, how in ELSEWHERE.items())
    read = set(defaults()) | read_elsewhere()
    assert sorted(read - set(ROWS)) == [], "not on the page"
    assert sorted(set(ROWS) - read) == [], "read by nothing"


def test_the_defaults_are_those_of_the_code() -> None:
    wrong = [
        f"{name} is {value!r} and the page says {ROWS[name]}"
        for name, value in defaults().items()
        if value and ROWS[name] != f"`{value}`"
    ]
    assert wrong == []


def test_the_readme_leads_there() -> None:
    assert "docs/settings.md" in (REPOSITORY / "README.md").read_text()
