"""A small set of labelled questions, made up: subjects of easy and of hard questions, with the answers of two models.

Hard questions are long and full of conditions; the weaker model fails most of them and a few of the easy ones.
Deterministic, so that what is fitted to it can be asserted.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path

from tests.bench.router import Row

THINGS = ("river", "bridge", "engine", "planet", "market", "treaty", "cell", "poem")


def rows(subjects: int = 12, each: int = 40, seed: int = 7) -> list[Row]:
    return list(_rows(random.Random(seed), subjects, each))


def _rows(chance: random.Random, subjects: int, each: int) -> Iterator[Row]:
    for subject in range(subjects):
        for _ in range(each):
            hard = chance.random() < 0.5
            text = (_hard if hard else _easy)(chance)
            weak = chance.random() < (0.25 if hard else 0.9)
            yield Row(text, f"subject_{subject:02}", weak, chance.random() < 0.92)


def _easy(chance: random.Random) -> str:
    return (
        f"What is the name of the {chance.choice(THINGS)} that is in the north of the country, and who made it first?"
    )


def _hard(chance: random.Random) -> str:
    parts = [
        f"Suppose that the {chance.choice(THINGS)}, if it is not number {chance.randrange(90)}, is never beside the"
        f" {chance.choice(THINGS)} unless he had given it to her."
        for _ in range(chance.randrange(4, 9))
    ]
    return " ".join(["Assume the following.", *parts, "Which of these statements is then false?"])


def write(folder: Path, found: list[Row]) -> None:
    """The set as files, in the layout of the published labels; the last subject takes the part of GSM8K."""
    (folder / "mmlu").mkdir()
    last = max(row.subject for row in found)
    for subject in sorted({row.subject for row in found}):
        path = folder / "gsm8k_responses.csv" if subject == last else folder / "mmlu" / f"mmlu_{subject}.csv"
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(("prompt", "weak", "strong"))
            lines.writerows((row.text, row.weak, row.strong) for row in found if row.subject == subject)
