"""The chat page's types are made from the API's schema; this keeps the copy they are made from up to date.

After a change of the API: `PARLEY_UPDATE_SCHEMA=1 pytest tests/contracts/test_client_types.py`, then `npm run types` in
frontend/. A test of the page checks the second step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drf_spectacular.generators import SchemaGenerator

STORED = Path(__file__).resolve().parents[2] / "frontend" / "src" / "generated" / "openapi.json"
Schema = dict[str, Any]


def references(node: object) -> Iterator[str]:
    """Names of the component schemas that a part of the document refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str) and value.startswith("#/components/schemas/"):
                yield value.rsplit("/", 1)[1]
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def client_schema() -> Schema:
    """The native API alone, with the schemas it uses: what the page calls, and no more."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    schema = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    full: Schema = json.loads(json.dumps(schema, default=str))
    paths = {path: item for path, item in full["paths"].items() if path.startswith("/api/")}
    schemas: Schema = full["components"]["schemas"]
    wanted: set[str] = set()
    queue = set(references(paths))
    while queue:
        name = queue.pop()
        if name not in wanted:
            wanted.add(name)
            queue |= set(references(schemas[name]))
    return {
        "openapi": full["openapi"],
        "info": {"title": full["info"]["title"], "version": "1"},
        "paths": paths,
        "components": {"schemas": {name: schemas[name] for name in sorted(wanted)}},
    }


def test_the_page_knows_the_current_schema() -> None:
    current = json.dumps(client_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("PARLEY_UPDATE_SCHEMA"):
        STORED.write_text(current)
    assert STORED.read_text() == current, "the API changed: see this file's head for the two commands"
