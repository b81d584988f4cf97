"""The child: enter the sandbox, then do one job and say what came of it, a JSON message a line.

The code for the job is imported first, as that is our own; the file is opened last. Nothing here may import
Django, nor anything slow that the job does not need.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module

from apps.files.extraction.answer import Job, say
from apps.files.extraction.sandbox import SandboxReport, enter
from apps.files.extraction.types import ExtractionFailed, Reason

_JOBS = {
    "read": "read",
    "render": "render",
    "ocr": "ocr.job",
    "unlock": "unlock",
    "tables": "tabular.read",
    "query": "tabular.query",
}


def _sandboxed(job: Job) -> SandboxReport:
    return enter(
        memory_bytes=int(job["memory_bytes"]),
        cpu_s=int(job["cpu_s"]),
        file_bytes=int(job["scratch_bytes"]),
        readable=tuple(job["readable"]),
        writable=str(job["scratch"]),
        may_exec=bool(job.get("may_exec", False)),
    )


def main() -> None:
    job: Job = json.loads(sys.argv[1])
    work: Callable[[Job], None] | None = None
    if job["op"] != "probe":
        work = import_module(f"apps.files.extraction.{_JOBS[job['op']]}").work
    report = _sandboxed(job)
    if work is None:
        say({"sandbox": asdict(report)})
        return
    try:
        work(job)
    except ExtractionFailed as failure:
        say({"failed": failure.reason.value})
    except MemoryError:
        say({"failed": Reason.OUT_OF_MEMORY.value})


if __name__ == "__main__":
    main()
