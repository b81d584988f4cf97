"""The sets that retrieval is judged on, and those that its weights are learnt on, as files, questions and gains.

Responsible for reading them and for what counts as found. `scifact`, `chunking` and `code` are judged; `documentation`
and `library` are for learning, and share no text or question with those.
"""

from __future__ import annotations

import ast
import csv
import json
import sysconfig
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from apps.files.extraction.paging import cut_pages
from apps.files.extraction.plain import paragraphs
from apps.files.extraction.types import Category, Element, PageRecord

Kind = Literal["prose", "code"]
Span = tuple[int, int]
"""Characters of a text, spaces not counted: cutting changes spaces alone."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file. Where `units` are given, they name what stands on each page; otherwise passages are judged by spans."""

    name: str
    pages: Sequence[PageRecord]
    units: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """`gains` by the names of units, or `spans` of the file `file` that hold the answer."""

    text: str
    gains: Mapping[str, int]
    file: int = 0
    spans: Sequence[Span] = ()


@dataclass(frozen=True, slots=True)
class JudgedSet:
    name: str
    kind: Kind
    sources: Sequence[Source]
    questions: Sequence[Question]


def _page(number: int, title: str, text: str) -> PageRecord:
    elements = [Element(Category.TITLE, title, level=1)] if title else []
    elements += paragraphs(text)
    return PageRecord(number=number, source="digital", text=text, elements=tuple(elements), headings=())


def _in_files(documents: Sequence[tuple[str, str, str]], size: int) -> list[Source]:
    """Documents of (name, title, text) as pages of files of `size`."""
    parts = [documents[start : start + size] for start in range(0, len(documents), size)]
    return [
        Source(
            f"part {number}.txt",
            [_page(page, title, text) for page, (_, title, text) in enumerate(part, start=1)],
            [name for name, _, _ in part],
        )
        for number, part in enumerate(parts)
    ]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open()]


def scifact(folder: Path) -> JudgedSet:
    """Claims and the abstracts that support or refute them, in BEIR's form (Wadden et al. 2020)."""
    gains: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / "test.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            gains.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    documents = [(row["_id"], row.get("title", ""), row["text"]) for row in _lines(folder / "corpus.jsonl")]
    asked = [
        Question(row["text"], gains[row["_id"]]) for row in _lines(folder / "queries.jsonl") if row["_id"] in gains
    ]
    return JudgedSet("scifact", "prose", _in_files(documents, 500), asked)


class _Unspaced:
    """Offsets of a text as offsets without its spaces."""

    def __init__(self, text: str) -> None:
        self._places = [place for place, char in enumerate(text) if not char.isspace()]

    def span(self, start: int, end: int) -> Span:
        return bisect_left(self._places, start), bisect_left(self._places, end)


def chunking(folder: Path) -> JudgedSet:
    """Five corpora and questions with the characters that answer them (Smith and Troynikov 2024)."""
    paths = sorted((folder / "corpora").glob("*.md"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    sources = [Source(path.name, cut_pages(paragraphs(text))) for path, text in zip(paths, texts, strict=True)]
    unspaced = [_Unspaced(text) for text in texts]
    numbers = {path.stem: number for number, path in enumerate(paths)}
    asked = []
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            number = numbers[row["corpus_id"]]
            found = [(item["start_index"], item["end_index"]) for item in json.loads(row["references"])]
            spans = [unspaced[number].span(*span) for span in found]
            asked.append(Question(row["question"], {}, number, spans))
    return JudgedSet("chunking", "prose", sources, asked)


def code(folder: Path) -> JudgedSet:
    """Source files in the parts that the set gives them, a page each (Anthropic's contextual retrieval cookbook)."""
    documents = json.loads((folder / "codebase_chunks.json").read_text())
    sources = [
        Source(
            f"{document['doc_id']}.txt",
            [_page(number, "", part["content"]) for number, part in enumerate(document["chunks"], start=1)],
            [f"{document['original_uuid']}/{part['original_index']}" for part in document["chunks"]],
        )
        for document in documents
    ]
    asked = [
        Question(row["query"], {f"{document}/{index}": 1 for document, index in row["golden_chunk_uuids"]})
        for row in _lines(folder / "evaluation_set.jsonl")
    ]
    return JudgedSet("code", "code", sources, asked)


def documentation(folder: Path) -> JudgedSet:
    """A product's documentation, section by section, and questions its users would ask (the same cookbook)."""
    sections = json.loads((folder / "anthropic_docs.json").read_text())
    documents = [(row["chunk_link"], row["chunk_heading"], row["text"]) for row in sections]
    asked = [
        Question(row["question"], dict.fromkeys(row["correct_chunks"], 1))
        for row in json.loads((folder / "docs_evaluation_dataset.json").read_text())
    ]
    return JudgedSet("documentation", "prose", _in_files(documents, len(documents)), asked)


MODULES = """
argparse bisect calendar collections/__init__ configparser contextlib csv dataclasses difflib fileinput
fractions functools getopt gettext glob gzip heapq html/parser imaplib inspect ipaddress mailbox netrc optparse
pathlib plistlib pprint queue random sched shelve shutil smtplib socketserver statistics string subprocess
tarfile tempfile textwrap threading timeit tokenize trace uuid weakref zipfile
""".split()  # noqa: SIM905


def _functions(path: Path) -> Iterator[tuple[str, str, str]]:
    """Functions as (name, first sentence of the docstring, source without the docstring)."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not (told := ast.get_docstring(node)):
            continue
        first, end = node.body[0], node.end_lineno or node.lineno
        said = range(first.lineno - 1, first.end_lineno or first.lineno)
        kept = [lines[number] for number in range(node.lineno - 1, end) if number not in said]
        yield f"{path.name}:{node.lineno}", " ".join(told.split("\n\n")[0].split()), "\n".join(kept)


def library() -> JudgedSet:
    """Functions of Python's standard library, each asked for by what its docstring, taken out, says it does."""
    home = Path(sysconfig.get_paths()["stdlib"])
    sources, asked = [], []
    for module in MODULES:
        path = home / f"{module}.py"
        found = list(_functions(path)) if path.exists() else []
        if not found:
            continue
        names = [f"{module}/{name}" for name, _, _ in found]
        pages = [_page(number, "", body) for number, (_, _, body) in enumerate(found, start=1)]
        sources.append(Source(f"{module.replace('/', '.')}.py", pages, names))
        good = [(told, name) for name, (_, told, _) in zip(names, found, strict=True) if len(told.split()) >= 6]
        asked += [Question(told, {name: 1}) for told, name in good[:6]]
    return JudgedSet("library", "code", sources, asked)
