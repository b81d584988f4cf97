"""Whether documents that broke other parsers are read: facts that must be found, and states that must be told.

    python -m tests.bench.parse --data DATA

`DATA/manifest.json` lists files, each with its assertions: `present` and `absent` (a text, on a page or anywhere),
`order`, `table_row` (cells of one row of a table), `count` (pages), `state` (what is said about the file). Each file
goes through the product's own steps: the check of what it is, the sandboxed child, recognition where a page asks for
it. A run of white space counts as one space. Writes build/bench/parse.json.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import tempfile
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.files.extraction import (
    Document,
    ExtractionFailed,
    Limits,
    PageRecord,
    combined,
    ocr_page,
    run,
    with_picture,
)
from apps.files.extraction.types import Category
from apps.files.scanning import inspect
from apps.files.types import FileFault, Kind, kind_of
from infra.local.layout import REPOSITORY
from tests.factories import documents

REPORT = REPOSITORY / "build" / "bench" / "parse.json"
LIMITS = Limits(page_s=60)
NO_SOCKET = "/nonexistent/clamd.ctl"
_SPACE = re.compile(r"\s+")


@dataclass
class Found:
    """What came of one file."""

    pages: list[PageRecord] = field(default_factory=list)
    first: list[PageRecord] = field(default_factory=list)
    document: Document | None = None
    failure: str = ""
    took_s: float = 0.0

    @property
    def own_pages(self) -> list[PageRecord]:
        """Pages of the file itself: those of files inside a PDF have no size."""
        sized = [page for page in self.pages if page.width is not None or page.error]
        return sized or self.pages

    def text(self, page: int | None) -> str:
        chosen = self.pages if page is None else [record for record in self.pages if record.number == page]
        return plain("\n".join(record.text for record in chosen))

    def rows(self) -> list[list[str]]:
        tables = [
            element.text for page in self.pages for element in page.elements if element.category is Category.TABLE
        ]
        return [[plain(cell) for cell in line.split(" | ")] for table in tables for line in table.split("\n")]


def plain(text: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def _recognised(page: PageRecord, path: Path, kind: Kind, pictures: dict[str, bytes]) -> PageRecord:
    """As the pipeline does it: pictures that stand on the page, or else the page itself."""
    names = [element.picture for element in page.elements if element.picture]
    for name in names:
        key, _, number = name.partition("/")
        with tempfile.NamedTemporaryFile() as file, suppress(ExtractionFailed):
            file.write(pictures[key])
            file.flush()
            page = with_picture(page, name, ocr_page(file.name, "image", int(number), limits=LIMITS))
    if page.needs_ocr and not names:
        return combined(page, ocr_page(path, kind, page.number, limits=LIMITS))
    return page


def read(path: Path) -> Found:
    found, begun = Found(), time.monotonic()
    kind = kind_of(path.name)
    try:
        if kind is None:
            raise FileFault("mislabelled")
        inspect(path, kind, clamd_socket=NO_SOCKET)
        pictures: dict[str, bytes] = {}
        found.document = run(path, kind, limits=LIMITS, on_page=found.first.append, on_picture=pictures.__setitem__)
        found.pages = [_recognised(page, path, kind, pictures) for page in found.first]
    except (FileFault, ExtractionFailed) as failed:
        found.failure = str(failed.reason)
    found.took_s = time.monotonic() - begun
    return found


# Assertions


def _present(found: Found, test: dict[str, Any]) -> bool:
    return plain(test["text"]) in found.text(test.get("page"))


def _order(found: Found, test: dict[str, Any]) -> bool:
    text = found.text(test.get("page"))
    before, after = text.find(plain(test["before"])), text.find(plain(test["after"]))
    return 0 <= before < after


def _table_row(found: Found, test: dict[str, Any]) -> bool:
    return [plain(cell) for cell in test["cells"]] in found.rows()


def _count(found: Found, test: dict[str, Any]) -> bool:
    elements = [element for page in found.pages for element in page.elements]
    counts = {
        "pages": len(found.own_pages),
        "tables": sum(element.category is Category.TABLE for element in elements),
        "attachments": sum(element.text.startswith("Attachment: ") for element in elements),
    }
    return counts.get(test["what"]) == int(test["value"])


def _state(found: Found, test: dict[str, Any]) -> bool:
    wanted = test["expect"]
    if name := re.match(r"attachment: (.+)", wanted):
        return f"Attachment: {name.group(1)}" in [
            element.text for page in found.pages for element in page.elements if element.category is Category.TITLE
        ]
    if least := re.match(r">=\s*(\d+) table regions", wanted):
        return sum(e.category is Category.TABLE for page in found.pages for e in page.elements) >= int(least.group(1))
    said = found.document.notices if found.document is not None else ()
    return STATES[wanted](found) if wanted in STATES else wanted in (found.failure, *said)


STATES: dict[str, Callable[[Found], bool]] = {
    "password_required": lambda found: found.failure == "encrypted",
    "corrupt": lambda found: found.failure == "damaged",
    "bomb": lambda found: found.failure in ("bomb", "too_large"),
    "empty": lambda found: found.failure == "empty",
    "unsupported": lambda found: found.failure in ("unsupported", "mislabelled"),
    "depth_limited": lambda found: found.document is not None and "depth_limited" in found.document.notices,
    "low_text_quality_flag": lambda found: any(page.needs_ocr for page in found.first),
}
ASSERTIONS: dict[str, Callable[[Found, dict[str, Any]], bool]] = {
    "present": _present,
    "absent": lambda found, test: bool(found.pages) and not _present(found, test),
    "order": _order,
    "table_row": _table_row,
    "count": _count,
    "state": _state,
}


def held(folder: Path, entries: list[dict[str, Any]]) -> tuple[int, int]:
    """How many assertions hold, of how many; prints those that do not."""
    passed = total = 0
    for entry in entries:
        found = read(folder / entry["file"])
        results = [(test, ASSERTIONS[test["type"]](found, test)) for test in entry["tests"]]
        good = sum(ok for _, ok in results)
        state = found.failure or f"{len(found.pages)} pages"
        verdict = "ok  " if good == len(results) else "FAIL"
        print(f"{verdict} {good}/{len(results)}  {found.took_s:5.1f} s  {entry['file']}: {state}")
        for test, ok in results:
            if not ok:
                print(f"       {json.dumps(test, ensure_ascii=False)}")
        passed, total = passed + good, total + len(results)
    return passed, total


# Speed


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def pages_per_cpu_s(pages: int = 300) -> float:
    """Pages of a digital PDF that a second of the child's CPU reads into elements with boxes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.pdf"
        path.write_bytes(documents.digital_pdf(pages))
        begun = _children_cpu_s()
        run(path, "pdf", on_page=lambda page: None)
        return pages / (_children_cpu_s() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with manifest.json")
    parser.add_argument("--only", default="", help="files whose name contains this")
    arguments = parser.parse_args()
    entries = [
        entry for entry in json.loads((arguments.data / "manifest.json").read_text()) if arguments.only in entry["file"]
    ]
    passed, total = held(arguments.data, entries)
    share, speed = passed / total, pages_per_cpu_s()
    figures = {
        "files_assertions_held": {"value": round(share, 4), "unit": "share", "goal": 1.0, "ok": passed == total},
        "pdf_read_pages_per_cpu_s": {"value": round(speed, 1), "unit": "pages/s", "goal": None, "ok": True},
    }
    print(f"{passed} of {total} assertions hold; {speed:.0f} pages of a digital PDF a CPU second")
    if not arguments.only:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
