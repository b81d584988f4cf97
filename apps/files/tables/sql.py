"""The check of SQL that a person or a model wrote, before any engine sees it. Pure.

What passes is one SELECT over known tables with known functions. What runs is not the text but what was understood of
it, written anew: no other reading of the same text can slip through.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from apps.files.extraction.tabular.types import ROW
from apps.files.tables.functions import ALLOWED, CLASSES

MAX_CHARS = 10_000
MAX_NODES = 5_000
MAX_DEPTH = 120
DIALECT = "duckdb"
PLACE = "_row_of_the_sheet"
"""The column that is added where each row of the answer is a row of a table."""

_NODES = (
    exp.Query, exp.Condition, exp.Identifier, exp.Alias, exp.Aliases, exp.TableAlias, exp.Table, exp.From, exp.Join,
    exp.Where, exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Having, exp.Order, exp.Ordered, exp.Limit,
    exp.Offset, exp.Fetch, exp.With, exp.CTE, exp.Star, exp.WindowSpec, exp.Qualify, exp.Distinct, exp.DataType,
    exp.DataTypeParam, exp.Interval, exp.Var, exp.Filter, exp.WithinGroup, exp.Values, exp.Tuple, exp.Unnest,
    exp.TableSample,
    exp.IgnoreNulls, exp.RespectNulls, exp.Lambda, exp.Kwarg, exp.PropertyEQ, exp.ColumnDef, exp.IntervalSpan,
    exp.RecursiveWithSearch, exp.Lateral,
)  # fmt: skip
_NEVER = (exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.Into, exp.Lock, exp.Command, exp.DML, exp.DDL)
_ENGINES_OWN = ("duckdb_", "pg_", "sqlite_", "pragma_", "information_schema")
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it would tell us of each statement that is no SELECT


class BadSql(ValueError):
    """Why the SQL is not run, as a sentence for the one who wrote it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """`sql` is what runs. `places`: its last column is `PLACE`, the row that `table` has in its sheet."""

    sql: str
    tables: frozenset[str]
    places: bool = False
    table: str = ""


def check(sql: str, tables: Collection[str], *, max_rows: int) -> Checked:
    """The SELECT with at most `max_rows` + 1 rows. Raises BadSql."""
    try:
        query = _parsed(sql)
        nodes = list(_bounded(query))
        known = {name.casefold(): name for name in tables}
        for node in nodes:
            _check_node(node)
        used = _check_tables(query, known)
        table = _plain_table(query, known)
        _limit(query, max_rows)
        _hide_row(query, known)
        if table:
            assert isinstance(query, exp.Select)
            query.select(exp.alias_(exp.column(ROW), PLACE), copy=False)
        return Checked(query.sql(dialect=DIALECT, comments=False), used, bool(table), table)
    except RecursionError:
        raise BadSql("The SQL is nested too deeply.") from None


def _parsed(sql: str) -> exp.Query:
    if len(sql) > MAX_CHARS:
        raise BadSql(f"The SQL is too long: up to {MAX_CHARS:,} characters can be run.")
    try:
        statements = [statement for statement in sqlglot.parse(sql, dialect=DIALECT) if statement is not None]
    except SqlglotError as error:
        raise BadSql(f"The SQL cannot be understood: {_reason(error)}") from None
    if not statements:
        raise BadSql("There is no SQL to run.")
    if len(statements) > 1:
        raise BadSql("Only one statement can be run at a time.")
    (query,) = statements
    if not isinstance(query, exp.Select | exp.SetOperation | exp.Subquery):
        raise BadSql("Only SELECT can be run: files are never changed.")
    return query


def _reason(error: SqlglotError) -> str:
    details = getattr(error, "errors", None) or [{}]
    found = details[0].get("description") or str(error).split("\n", 1)[0]
    line, near = details[0].get("line"), details[0].get("highlight")
    return f"{found[:200].rstrip('.')}" + (f' (line {line}, near "{near[:40]}")' if line and near else "") + "."


def _bounded(query: exp.Query) -> Iterator[exp.Expr]:
    for count, node in enumerate(query.walk()):
        if count > MAX_NODES:
            raise BadSql("The SQL has too many parts.")
        if node.depth > MAX_DEPTH:
            raise BadSql("The SQL is nested too deeply.")
        yield node


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, exp.Func):
        name = node.name.lower() if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else node.key
        known = ALLOWED if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else ALLOWED | CLASSES
        if name not in known:
            raise BadSql(f"The function {name}() cannot be used.")
    elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        raise BadSql("Functions are called by their own name, without a schema.")
    if isinstance(node, _NEVER) or not isinstance(node, _NODES):
        raise BadSql(f"{node.key.upper()} cannot be used: only SELECT over the file's tables can be run.")


def _check_tables(query: exp.Query, known: dict[str, str]) -> frozenset[str]:
    """The known tables that are read. A name that a WITH gives counts wherever it stands."""
    given = {cte.alias.casefold() for cte in query.find_all(exp.CTE)}
    if any(name.startswith(_ENGINES_OWN) for name in given):
        raise BadSql("WITH cannot give a name of the engine's own.")
    used = set()
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            if table.this.key not in ("generateseries", "explode"):
                raise BadSql(f"{_called(table.this)}() cannot be read from: only the file's tables can.")
            continue
        name = table.name.casefold()
        if table.args.get("db") or table.args.get("catalog") or (name not in given and name not in known):
            raise BadSql(f"There is no table {table.sql(dialect=DIALECT)[:80]}. {_listed(known)}")
        if name in known:
            used.add(known[name])
    return frozenset(used)


def _called(function: exp.Func) -> str:
    return function.name.lower() if isinstance(function, exp.Anonymous) else function.key


def _listed(known: dict[str, str]) -> str:
    names = sorted(known.values())
    return f"The tables are: {', '.join(names[:20])}." if names else "The file has no tables."


def _limit(query: exp.Query, max_rows: int) -> None:
    """No more rows than are shown, and one, which tells that there are more."""
    limit = query.args.get("limit")
    if limit is not None:
        wanted = limit.args.get("expression") or limit.args.get("count")
        if not isinstance(wanted, exp.Literal) or not wanted.name.isdigit():
            raise BadSql("LIMIT takes a number.")
        if int(wanted.name) <= max_rows:
            return
    query.limit(max_rows + 1, dialect=DIALECT, copy=False)


def _sources(select: exp.Select) -> list[exp.Expression]:
    first = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or []
    return [*([first.this] if first else []), *(join.this for join in joins)]


def _hide_row(query: exp.Query, known: dict[str, str]) -> None:
    """`*` leaves the row's number out, which still can be asked for by its name."""
    given = {cte.alias.casefold() for cte in query.find_all(exp.CTE)}
    for select in query.find_all(exp.Select):
        named = {
            source.alias_or_name.casefold()
            for source in _sources(select)
            if isinstance(source, exp.Table) and source.name.casefold() in known and source.name.casefold() not in given
        }
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                continue
            part = "except_" if "except_" in exp.Star.arg_types else "except"
            left_out = star.args.get(part) or []
            wanted = {item.table.casefold()} if isinstance(item, exp.Column) else named
            if wanted & named and all(name.name.casefold() != ROW for name in left_out):
                star.set(part, [*left_out, exp.to_identifier(ROW)])


def _plain_table(query: exp.Query, known: dict[str, str]) -> str:
    """The table whose rows the answer's rows are; empty where they are groups, pairs or anything else."""
    if not isinstance(query, exp.Select):
        return ""
    told = ("group", "distinct", "having", "qualify", "with_", "with", "joins", "laterals", "pivots")
    if any(query.args.get(part) for part in told):
        return ""
    sources = _sources(query)
    if len(sources) != 1 or not isinstance(sources[0], exp.Table) or sources[0].args.get("pivots"):
        return ""
    for item in query.expressions:
        if any(
            not isinstance(node.parent, exp.Window) and not node.find_ancestor(exp.Subquery)
            for node in item.find_all(exp.AggFunc, exp.Explode)
        ):
            return ""
    return known.get(sources[0].name.casefold(), "")
