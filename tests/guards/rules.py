"""The house rules that no linter knows, as functions from one parsed module to its violations.

`test_rules.py` runs them over the repository, and over seeded violations that each must find.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

LONGEST_FILE = 400


@dataclass(frozen=True)
class Module:
    """One source file, by its path inside the repository."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def app(self) -> str:
        """The app's name for `apps/<name>/...`, else an empty string."""
        parts = self.path.parts
        return parts[1] if parts[0] == "apps" and len(parts) > 2 else ""

    def inside(self, *names: str) -> bool:
        """Whether the file is, or lies in a package, with one of these names."""
        return bool({*self.path.parts, self.path.stem} & set(names))


@dataclass(frozen=True)
class Violation:
    path: PurePosixPath
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


Rule = Callable[[Module], Iterator[Violation]]

ASYNC_ORM = frozenset(
    [
        "aget",
        "acreate",
        "aget_or_create",
        "aupdate_or_create",
        "abulk_create",
        "abulk_update",
        "acount",
        "aexists",
        "aupdate",
        "adelete",
        "afirst",
        "alast",
        "alatest",
        "aearliest",
        "ain_bulk",
        "aiterator",
        "aaggregate",
        "aexplain",
        "acontains",
        "arefresh_from_db",
        "asave",
    ]
)
BRIDGES = frozenset({"sync_to_async", "database_sync_to_async", "async_to_sync"})


def no_async_orm(module: Module) -> Iterator[Violation]:
    """Async code reaches the ORM through core/db.py only: one hop an operation, no connection held while streaming."""
    if not module.app or str(module.path) == "apps/core/db.py":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASYNC_ORM:
            yield Violation(module.path, node.lineno, f".{node.func.attr}() outside core/db.py")
        if isinstance(node, ast.ImportFrom):
            for name in {alias.name for alias in node.names} & BRIDGES:
                yield Violation(module.path, node.lineno, f"{name} outside core/db.py")


OWNERS = ("organization", "user", "owner", "actor", "conversation", "file")
LOOKUPS = frozenset({"get", "filter", "exclude"})


def owner_scoped(module: Module) -> Iterator[Violation]:
    """The only road from a request's id to a row is an access function.

    Entry points touch no manager at all. Elsewhere, a function that acts for somebody (it has a parameter `actor`)
    may look a row up by an id that it was given only together with an owner.
    """
    if not module.app or module.inside("access", "migrations", "management", "admin"):
        return
    entry = module.inside("api", "realtime", "views") and module.path.parts[2] in ("api", "realtime", "views.py")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id in ("get_object_or_404", "aget_object_or_404"):
            yield Violation(module.path, node.lineno, "get_object_or_404 knows no owner: use an access function")
        if entry and isinstance(node, ast.Attribute) and node.attr == "objects":
            yield Violation(module.path, node.lineno, "an entry point queries rows: use selectors and services")
        if isinstance(node, ast.FunctionDef) and "actor" in (parameters := _parameters(node)):
            yield from _unscoped_lookups(module, node, parameters)


def _parameters(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _unscoped_lookups(module: Module, function: ast.FunctionDef, parameters: set[str]) -> Iterator[Violation]:
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        by_id = [value for name, value in given.items() if name in ("id", "pk", "id__in", "pk__in")]
        owned = any(name.startswith(OWNERS) for name in given)
        if not owned and any(isinstance(value, ast.Name) and value.id in parameters for value in by_id):
            yield Violation(module.path, node.lineno, f"{function.name} looks a row up by id without its owner")


def task_names(module: Module) -> Iterator[Violation]:
    """Celery tasks are called `<app>.<verb>`, whatever module they move to."""
    if not module.app:
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            function = call.func if call else decorator
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name not in ("shared_task", "task"):
                continue
            named = [keyword.value for keyword in call.keywords if keyword.arg == "name"] if call else []
            value = named[0].value if named and isinstance(named[0], ast.Constant) else None
            if not (isinstance(value, str) and re.fullmatch(rf"{module.app}\.[a-z][a-z_]*", value)):
                yield Violation(module.path, node.lineno, f"task {node.name} needs a name like {module.app}.verb")


def file_size(module: Module) -> Iterator[Violation]:
    """A file that a person can read in one go."""
    lines = module.text.count("\n")
    if lines > LONGEST_FILE and not module.inside("migrations", "generated"):
        yield Violation(module.path, lines, f"{lines} lines; the limit is {LONGEST_FILE}")


# `env.py` reads; the other two name the settings module before Django exists.
READERS = ("apps/config/env.py", "apps/config/asgi.py", "apps/config/celery.py")


def one_reader_of_the_environment(module: Module) -> Iterator[Violation]:
    """Settings are typed and in one place."""
    if not module.app or str(module.path) in READERS:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and _named(node.value, "os"):
            yield Violation(module.path, node.lineno, f"os.{node.attr} outside apps/config/env.py")
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            for name in {alias.name for alias in node.names} & {"environ", "getenv"}:
                yield Violation(module.path, node.lineno, f"os.{name} outside apps/config/env.py")


HTTP_CLIENTS = ("httpx", "requests", "aiohttp", "urllib3", "urllib.request", "http.client")


def one_outbound_client(module: Module) -> Iterator[Violation]:
    """Requests to the world leave through core/egress.py, where they can be bounded, refused and recorded."""
    if not module.app or str(module.path) == "apps/core/egress.py":
        return
    for node in ast.walk(module.tree):
        for name in _imported(node):
            if any(name == client or name.startswith(f"{client}.") for client in HTTP_CLIENTS):
                yield Violation(module.path, node.lineno, f"{name} outside core/egress.py")  # type: ignore[attr-defined]


def no_signals(module: Module) -> Iterator[Violation]:
    """What a write does is read in its service, not in a receiver or an overridden save()."""
    if not module.app:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("django.db.models.signals", "django.dispatch")
        ):
            yield Violation(module.path, node.lineno, "signals are not used")
        if module.inside("models") and isinstance(node, ast.FunctionDef) and node.name in ("save", "delete"):
            yield Violation(module.path, node.lineno, f"{node.name}() is overridden")


def says_what_it_is_for(module: Module) -> Iterator[Violation]:
    """A module's docstring says what it is responsible for; `apps.py` and `urls.py` are the same everywhere."""
    if (
        module.text.strip()
        and not module.inside("migrations", "apps.py", "urls.py")
        and ast.get_docstring(module.tree) is None
    ):
        yield Violation(module.path, 1, "no docstring")


def _named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


PYTHON_RULES: tuple[Rule, ...] = (
    no_async_orm,
    owner_scoped,
    task_names,
    file_size,
    one_reader_of_the_environment,
    one_outbound_client,
    no_signals,
    says_what_it_is_for,
)
