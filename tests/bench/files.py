"""What reading files costs: CPU of every process from the first byte uploaded until the text can be searched.

    python -m tests.bench.files [--pages 300] [--scans 6]

Real processes: one web (which receives the upload), one Celery worker a queue with the sandboxed children they start,
Postgres and Valkey. In the same run, on the same file: pypdfium2 taking the text alone, and tesseract alone on the
same pictures. Vectors are made after a file is searchable and are not counted. Writes build/bench/files.json.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pypdfium2

from infra.local.layout import REPOSITORY
from tests.bench.load import cpu_s
from tests.factories import documents
from tests.services import session
from tests.stack import Stack

REPORT = REPOSITORY / "build" / "bench" / "files.json"
DPI = 200
PATIENCE_S = 600.0
Figures = dict[str, dict[str, Any]]


# CPU


@dataclass
class Cost:
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.cpu_s.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self.cpu_s.items())
        return f"{self.total:.2f} CPU s ({parts}), {self.wall_s:.1f} s by the clock"


@contextmanager
def measured(pids: Mapping[str, int]) -> Iterator[Cost]:
    cost, begun = Cost(), time.monotonic()
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    yield cost
    cost.wall_s = time.monotonic() - begun
    cost.cpu_s = {name: cpu_s(pid) - before[name] for name, pid in pids.items()}


# The product


class Product:
    """Parley's processes and a client of its API. Nobody takes from the queue of vectors."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        for queues in ("ingest,default", "ocr"):
            stack.launch(
                f"worker-{queues.partition(',')[0]}",
                ("-m", "celery", "-A", "apps.config.celery:app", "worker", "--without-gossip", "--without-mingle",
                 "-Q", queues, "-c", "1", "-n", f"{queues}@%h", "--loglevel", "INFO"),
                lambda me: me.printed(" ready."),
                OMP_THREAD_LIMIT="1",
            )  # fmt: skip
        headers = {"Authorization": f"Bearer {stack.api_key()}"}
        self._http = httpx.Client(base_url=stack.url(), headers=headers, timeout=60)

    @property
    def pids(self) -> dict[str, int]:
        names = ("web-1", "worker-ingest", "worker-ocr", "valkey")
        return {name: self._stack.pid(name) for name in names} | {"postgres": self._stack.services.postgres_pid}

    def upload(self, name: str, body: bytes) -> str:
        started = self._http.post("/api/files", json={"name": name, "size": len(body)}).raise_for_status().json()
        step, sent = started["upload"]["part_size"], []
        for part in started["upload"]["parts"]:
            chunk = body[(part["number"] - 1) * step :][:step]
            answer = self._http.put(part["url"], content=chunk).raise_for_status()
            sent.append({"number": part["number"], "etag": answer.headers["etag"]})
        file_id = str(started["file"]["id"])
        self._http.post(f"/api/files/{file_id}/complete", json={"parts": sent}).raise_for_status()
        return file_id

    def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._http.get(path).raise_for_status().json()
        return found

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._http.post(path, json=body).raise_for_status().json()
        return found

    def wait_until_searchable(self, file_id: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            file: dict[str, Any] = self._http.get(f"/api/files/{file_id}").raise_for_status().json()
            if file["state"] in ("ready", "partial", "failed"):
                assert file["state"] == "ready", file
                assert file["pages_ready"] == file["page_count"], file
                return file
            assert time.monotonic() < deadline, file
            time.sleep(0.5)

    def cost_of(self, name: str, body: bytes) -> Cost:
        with measured(self.pids) as cost:
            self.wait_until_searchable(self.upload(name, body))
        print(f"  {name}: {cost}")
        return cost


# Beside it


def text_alone_cpu_s(body: bytes) -> float:
    begun = time.process_time()
    document = pypdfium2.PdfDocument(body)
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage()
        assert text.get_text_range()
        text.close()
        page.close()
    document.close()
    return time.process_time() - begun


def tesseract_alone_cpu_s(body: bytes) -> float | None:
    """CPU for the pictures of all pages; None where there is no tesseract."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    document = pypdfium2.PdfDocument(body)
    with tempfile.TemporaryDirectory() as folder:
        pictures = []
        for number in range(len(document)):
            picture = io.BytesIO()
            document[number].render(scale=DPI / 72, grayscale=True).to_pil().save(picture, "PNG")
            pictures.append(Path(folder) / f"{number}.png")
            pictures[-1].write_bytes(picture.getvalue())
        begun = _children_cpu_s()
        for path in pictures:
            _recognise(program, path)
        return _children_cpu_s() - begun


def _recognise(program: str, path: Path) -> None:
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run([program, path, "stdout"], env=environment, capture_output=True, check=True)
    assert done.stdout.strip()


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# Figures


def figure(value: float, unit: str, goal: float | None = None, *, at_least: bool = False) -> dict[str, Any]:
    ok = goal is None or (value >= goal if at_least else value <= goal)
    return {"value": round(value, 2), "unit": unit, "goal": goal, "ok": ok}


def measure(pages: int, scans: int) -> Figures:
    report, pictures = documents.digital_pdf(pages), documents.scanned_pdf(scans)
    with Stack(session(), webs=1, runners=0, replicas=0) as stack:
        product = Product(stack)
        product.cost_of("warm-up.pdf", documents.mixed_pdf(2, scanned=[2], facts=[]))
        digital = product.cost_of("report.pdf", report)
        again = product.cost_of("the same report.pdf", report)
        scanned = product.cost_of("scans.pdf", pictures)
    figures = {
        "pdf_digital_pages_per_cpu_s": figure(pages / digital.total, "pages/CPU-s", 60, at_least=True),
        "pdf_digital_pages_per_cpu_s_text_alone": figure(pages / text_alone_cpu_s(report), "pages/CPU-s"),
        "pdf_digital_searchable_s": figure(digital.wall_s, "s"),
        "same_content_cpu_ms_per_page": figure(again.total / pages * 1000, "CPU-ms"),
        "ocr_cpu_s_per_page": figure(scanned.total / scans, "CPU-s", 4),
    }
    alone = tesseract_alone_cpu_s(pictures)
    if alone is not None:
        figures["ocr_cpu_s_per_page_tesseract_alone"] = figure(alone / scans, "CPU-s")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--scans", type=int, default=6)
    options = parser.parse_args()
    figures = measure(options.pages, options.scans)
    for name, entry in figures.items():
        goal = "" if entry["goal"] is None else f"  goal {entry['goal']}  {'ok' if entry['ok'] else 'MISSED'}"
        print(f"{name:44} {entry['value']:>9} {entry['unit']:12}{goal}")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(entry["ok"] for entry in figures.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
