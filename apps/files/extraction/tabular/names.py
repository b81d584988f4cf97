"""Names that can be typed in SQL without quotes, made from what people call sheets and columns."""

from __future__ import annotations

import re
import unicodedata

from apps.files.extraction.tabular.types import ROW

_LONGEST = 40
# Of DuckDB's keywords and of sqlglot's, those that fail as a plain name somewhere in a SELECT.
RESERVED = frozenset(
    """
    all alter analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by case
    cast check collate collation column concurrently constraint create cross cube current_catalog current_date
    current_time current_timestamp current_user default deferrable desc describe distinct do drop else end except
    false fetch filter for force foreign freeze from full glob grant group having if ilike in initially inner insert
    install intersect interval into is isnull join lambda lateral leading left like limit localtime localtimestamp
    lock map natural not notnull null offset on only or order outer over overlaps pivot pivot_longer pivot_wider
    placing positional primary qualify references returning revoke right rlike rollback rollup row select semi
    session_user set show similar some summarize symmetric table tablesample then to trailing true truncate try_cast
    union unique unpack unpivot using values variadic verbose when where window with within xor
    """.split()  # noqa: SIM905
)


def identifier(text: str, taken: set[str], fallback: str) -> str:
    """A name of at most 46 letters, digits and underscores that is not in `taken`, to which it is added."""
    name = re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", text).casefold()).strip("_")[:_LONGEST].rstrip("_")
    name = unicodedata.normalize("NFC", name) or fallback
    if name[0].isdigit():
        name = f"c_{name}"
    if name in RESERVED or name == ROW:
        name += "_"
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free
