"""Every hostile file there is, by name."""

from __future__ import annotations

from tests.bench.poison import archives, containers, markup, pdfs, pictures, tables
from tests.bench.poison.types import Poison


def corpus() -> list[Poison]:
    found = [
        *pdfs.poisons(),
        *archives.poisons(),
        *pictures.poisons(),
        *pictures.inside(),
        *markup.poisons(),
        *markup.mislabelled(),
        *tables.poisons(),
        *containers.poisons(),
    ]
    assert len({poison.name for poison in found}) == len(found)
    return found
