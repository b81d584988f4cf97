"""Children that misbehave: whatever one does, its parent says what happened, in time, and nothing is left of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from apps.files.extraction import ExtractionFailed, Limits, PageRecord, Reason, run
from tests.factories import hostile

LIMITS = Limits(page_s=1.5, wall_s=6, output_bytes=4 << 20)
START = 'say(document={"page_count": 3})\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "input"
    path.write_bytes(b"irrelevant")
    return path


def read(source: Path, code: str, limits: Limits = LIMITS) -> list[PageRecord]:
    pages: list[PageRecord] = []
    run(source, "pdf", limits=limits, on_page=pages.append, command=hostile.child(code))
    return pages


def failure(source: Path, code: str, limits: Limits = LIMITS) -> Reason:
    with pytest.raises(ExtractionFailed) as failed:
        read(source, code, limits)
    return failed.value.reason


def test_a_child_that_behaves(source: Path) -> None:
    pages = read(source, START + "page(1); page(2); page(3); say(end=True)")
    assert [page.number for page in pages] == [1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [
        b"no json at all",
        b"{}",
        b'{"document": {"page_count": 0}}',
        b'{"document": {"page_count": 3, "more": 1}}',
        b'{"document": {"page_count": "3"}}',
        b'{"document": {"page_count": 99999999999}}',
        b'{"surprise": true}',
        b'{"at": 1.5}',
        b"\xff\xfe\x00",
        b'{"page": {"number": 1}}',
        b'{"failed": "because I say so"}',
        b"[" * 100_000,
    ],
)
def test_garbage_instead_of_a_document_fails_the_file(source: Path, line: bytes) -> None:
    assert failure(source, f"os.write(1, {line!r} + b'\\n')") is Reason.CRASHED


@pytest.mark.parametrize(
    "extra",
    [
        {"text": "nul \x00"},
        {"width": -1.0},
        {"width": 1e9},
        {"confidence": 2.0},
        {"elements": [{"category": "Poem", "text": "x"}]},
        {"elements": [{"category": "Title", "text": ""}]},
        {"elements": [{"category": "Title", "text": "x", "level": 0}]},
        {"elements": [{"category": "Title", "text": "x", "box": [0, 0, 1.5, 1]}]},
        {"elements": [{"category": "Title", "text": "x", "box": [0.5, 0, 0.1, 1]}]},
        {"elements": [{"category": "Title", "text": "x", "lines": [[0, 9, 0, 0, 1, 1]]}]},
        {"elements": [{"category": "Title", "text": "xy", "lines": [[1, 2, 0, 0, 1, 1], [0, 1, 0, 0, 1, 1]]}]},
        {"elements": [{"category": "Title", "text": "xy", "lines": [[-1, 2, 0, 0, 1, 1]]}]},
        {"elements": [{"category": "Title", "text": "x", "extra": 1}]},
        {"headings": [{"level": 1, "text": "y" * 301}]},
        {"number": True},
        {"source": "imagined"},
    ],
)
def test_a_page_that_makes_no_sense_is_not_believed(source: Path, extra: dict[str, object]) -> None:
    """It costs that page; the ones around it are read."""
    code = (
        START
        + f"bad = {extra!r}\n"
        + "\n".join(
            [
                "for number in range(job['first'], 4):",
                "    if number in job['skip']: page(number)",
                "    else:",
                "        say(at=number)",
                "        page(**({'number': number} | (bad if number == 2 else {})))",
                "say(end=True)",
            ]
        )
    )
    pages = read(source, code)
    assert [(page.number, page.error) for page in pages] == [(1, None), (2, Reason.CRASHED), (3, None)]


def test_not_a_number_is_no_box(source: Path) -> None:
    line = b'{"page": {"number": 1, "elements": [{"category": "Title", "text": "x", "box": [NaN, 0, 1, 1]}]}}'
    pages = read(source, START + f"os.write(1, {line!r} + b'\\n')", replace(LIMITS, max_restarts=0))
    assert {page.error for page in pages} == {Reason.CRASHED}


def test_half_a_surrogate_is_no_text(source: Path) -> None:
    line = rb'{"page": {"number": 1, "text": "\ud800"}}'
    pages = read(source, START + f"os.write(1, {line!r} + b'\\n')", replace(LIMITS, max_restarts=0))
    assert {page.error for page in pages} == {Reason.CRASHED}


@pytest.mark.parametrize(
    "order", ["page(2)", "page(1); page(1)", "page(1); page(3)", "page(1); page(2); page(3); page(4)"]
)
def test_pages_come_in_order(source: Path, order: str) -> None:
    pages = read(source, START + order, replace(LIMITS, max_restarts=0))
    assert [page.number for page in pages] == [1, 2, 3]
    assert pages[-1].error is Reason.CRASHED or order.endswith("page(4)")


def test_a_document_cannot_change_its_length(source: Path) -> None:
    code = "say(document={'page_count': 3 if job['first'] == 1 else 30})\npage(job['first'])"
    pages = read(source, code)
    assert [page.number for page in pages] == [1, 2, 3]


def test_a_page_that_kills_its_reader_costs_that_page_only(source: Path) -> None:
    """Page 2 was reported late, when page 3 was already being read: it is not blamed."""
    code = START + "\n".join(
        [
            "waiting = None",
            "for number in range(job['first'], 4):",
            "    if number not in job['skip']:",
            "        say(at=number)",
            "        if number == 3: os.abort()",
            "    if waiting: page(waiting)",
            "    waiting = number",
            "page(waiting); say(end=True)",
        ]
    )
    pages = read(source, code)
    assert [(page.number, page.error) for page in pages] == [(1, None), (2, None), (3, Reason.CRASHED)]


def test_headings_are_handed_to_the_next_child(source: Path) -> None:
    code = START + "\n".join(
        [
            "if job['first'] == 1:",
            "    page(1, headings=[{'level': 1, 'text': 'Part one'}]); say(at=2); os.abort()",
            "page(2, text=json.dumps(job['headings'])); page(3); say(end=True)",
        ]
    )
    assert read(source, code)[1].text == '[[1, "Part one"]]'


def test_restarts_are_bounded(source: Path, tmp_path: Path) -> None:
    tally = tmp_path / "tally"
    code = "\n".join(
        [
            "say(document={'page_count': 500})",
            "say(at=next(number for number in range(job['first'], 501) if number not in job['skip']))",
            f"open({str(tally)!r}, 'a').write('x')",
            "os.abort()",
        ]
    )
    pages = read(source, code, replace(LIMITS, max_restarts=3))
    assert len(pages) == 500
    assert all(page.error is Reason.CRASHED for page in pages)
    assert len(tally.read_text()) == 4


def test_more_pages_than_allowed(source: Path) -> None:
    assert failure(source, "say(document={'page_count': 3000})") is Reason.TOO_MANY_PAGES


def test_what_the_child_says_of_the_file_is_passed_on(source: Path) -> None:
    assert failure(source, "say(failed='encrypted')") is Reason.ENCRYPTED


def test_a_child_that_sleeps_is_stopped(source: Path) -> None:
    started = time.monotonic()
    pages = read(source, START + "page(1); say(at=2); time.sleep(60)", replace(LIMITS, max_restarts=0))
    assert [page.error for page in pages] == [None, Reason.TIMED_OUT, Reason.TIMED_OUT]
    assert time.monotonic() - started < 30


def test_dripping_output_does_not_buy_time(source: Path) -> None:
    started = time.monotonic()
    read(source, START + "while True: os.write(1, b' '); time.sleep(0.05)", replace(LIMITS, max_restarts=0))
    assert time.monotonic() - started < 30


def test_the_time_of_the_caller_is_not_counted(source: Path) -> None:
    limits = replace(LIMITS, page_s=0.6, wall_s=1.5)
    run(
        source,
        "pdf",
        limits=limits,
        on_page=lambda page: time.sleep(0.7),
        command=hostile.child(START + "page(1); page(2); page(3); say(end=True)"),
    )


@pytest.mark.parametrize("output", ["b'x' * 65536", "b'{}\\n' * 20000"])
def test_endless_output_is_cut_off(source: Path, output: str) -> None:
    before = psutil.Process().memory_info().rss
    assert failure(source, f"while True: os.write(1, {output})") in (Reason.TOO_LARGE, Reason.CRASHED)
    assert psutil.Process().memory_info().rss - before < 64 << 20


def test_endless_pages_are_cut_off(source: Path) -> None:
    code = "say(document={'page_count': 2000})\nfor number in range(1, 2001): page(number, text='x' * 300000)"
    pages = read(source, code, replace(LIMITS, max_restarts=0))
    assert len(pages) == 2000
    assert pages[-1].error is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os.write(2, b'memory allocation of 99 bytes failed'); os.abort()", Reason.OUT_OF_MEMORY),
        ("os.write(2, b'terminate called after throwing std::bad_alloc'); os.abort()", Reason.OUT_OF_MEMORY),
        ("x = b'x' * (700 << 20); os.abort()", Reason.OUT_OF_MEMORY),
        ("os.write(2, b'assertion failed'); os.abort()", Reason.CRASHED),
        ("os.write(2, b'memory allocation of 99 bytes failed')", Reason.CRASHED),
    ],
)
def test_a_child_that_was_refused_memory_is_told_from_one_that_crashed(source: Path, code: str, reason: Reason) -> None:
    assert failure(source, code, replace(LIMITS, memory_bytes=768 << 20)) is reason


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def wait_until(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


def test_what_a_child_started_dies_with_it(source: Path, tmp_path: Path) -> None:
    """A grandchild that keeps the output open does not hold the parent up either."""
    note = tmp_path / "pid"
    code = START + "\n".join(
        [
            "pid = os.fork()",
            "if pid == 0: time.sleep(60)",
            f"open({str(note)!r}, 'w').write(str(pid))",
            "page(1); page(2); page(3); say(end=True)",
        ]
    )
    assert len(read(source, code)) == 3
    assert wait_until(lambda: not alive(int(note.read_text())))


def test_a_caller_that_gives_up_leaves_no_child(source: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"open({str(note)!r}, 'w').write(str(os.getpid()))\n" + START + "page(1); time.sleep(60)"

    def give_up(page: PageRecord) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(source, "pdf", limits=LIMITS, on_page=give_up, command=hostile.child(code))
    assert wait_until(lambda: not alive(int(note.read_text())))


def test_the_scratch_folder_is_removed_and_the_environment_is_bare(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "secret")
    note = tmp_path / "note"
    code = START + "\n".join(
        [
            "open('left-over', 'w').write('x')",
            f"open({str(note)!r}, 'w').write(json.dumps([os.getcwd(), sorted(os.environ)]))",
            "page(1); page(2); page(3); say(end=True)",
        ]
    )
    read(source, code)
    folder, names = json.loads(note.read_text())
    assert not os.path.exists(folder)
    assert set(names) <= {"LANG", "PATH", "OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LC_CTYPE"}


def test_descriptors_do_not_leak(source: Path) -> None:
    for _ in range(3):
        read(source, START + "page(1); page(2); page(3); say(end=True)")
    before = psutil.Process().num_fds()
    for code in (START + "page(1); page(2); page(3); say(end=True)", "os.abort()", "print('garbage')"):
        with suppress(ExtractionFailed):
            read(source, code)
    assert psutil.Process().num_fds() == before
