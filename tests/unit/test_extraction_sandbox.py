"""The sandbox from inside: what hostile code in a child can still do. Each layer is tested where the kernel has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.files.extraction import sandbox_report
from apps.files.extraction.child import ROOT, readable_paths

REPORT = sandbox_report()
needs_syscalls = pytest.mark.skipif(not REPORT.syscalls, reason="no system call filter on this kernel")
needs_files = pytest.mark.skipif(not REPORT.files, reason="no Landlock on this kernel")

_INSIDE = """
import ctypes, json, os, resource, signal, socket, subprocess, sys, threading, time
sys.path.insert(0, sys.argv[1])
from apps.files.extraction.sandbox import enter
options = json.loads(sys.argv[2])
enter(readable=tuple(options.pop("readable")), **options)
def attempt(work):
    try:
        return repr(work())
    except (OSError, MemoryError, RuntimeError) as error:
        return type(error).__name__ + ":" + str(getattr(error, "errno", ""))
"""


def inside(code: str, scratch: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    limits: dict[str, Any] = {
        "memory_bytes": 512 << 20,
        "cpu_s": 10,
        "file_bytes": 1 << 20,
        "readable": readable_paths(),
        "writable": str(scratch),
        "may_exec": False,
    }
    command = [sys.executable, "-I", "-c", _INSIDE + code, str(ROOT), json.dumps(limits | options)]
    return subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=60, check=False)


def attempts(works: dict[str, str], scratch: Path, **options: Any) -> dict[str, str]:
    body = ",\n".join(f"{name!r}: attempt(lambda: {work})" for name, work in works.items())
    done = inside(f"print(json.dumps({{{body}}}))", scratch, **options)
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def test_the_report_is_what_a_child_found() -> None:
    assert REPORT.level in ("full", "partial", "limits")
    if sys.platform == "linux":
        assert REPORT.network != "none"
        assert REPORT.privileges


@needs_syscalls
def test_no_sockets_of_any_family(tmp_path: Path) -> None:
    found = attempts(
        {
            "tcp": "socket.socket(socket.AF_INET)",
            "six": "socket.socket(socket.AF_INET6)",
            "unix": "socket.socket(socket.AF_UNIX)",
            "pair": "socket.socketpair()",
            "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "name": "socket.create_connection(('127.0.0.1', 1))",
        },
        tmp_path,
    )
    assert set(found.values()) == {"PermissionError:1"}


def test_no_interface_to_reach_anything_by(tmp_path: Path) -> None:
    if REPORT.network != "namespace":
        pytest.skip("no network namespace on this host")
    found = attempts({"links": "open('/proc/self/net/dev').read()"}, tmp_path)
    assert "eth" not in found["links"]
    assert "en" not in found["links"].replace("length", "")


@needs_syscalls
def test_no_new_processes_but_threads(tmp_path: Path) -> None:
    found = attempts(
        {
            "fork": "os.fork()",
            "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
            "run": "subprocess.run(['/bin/true'])",
            "exec": "os.execv('/bin/true', ['true'])",
            "thread": "threading.Thread(target=lambda: None).start()",
        },
        tmp_path,
    )
    assert found.pop("thread") == "None"
    assert set(found.values()) == {"PermissionError:1"}


@needs_syscalls
def test_a_program_that_takes_its_place_stays_inside(tmp_path: Path) -> None:
    code = (
        "os.execv(sys.executable, [sys.executable, '-I', '-c', "
        "'import os, socket\\nfor work in (os.fork, socket.socket):\\n"
        " try: work(); print(1)\\n except PermissionError: print(0)'])"
    )
    done = inside(code, tmp_path, may_exec=True)
    assert done.stdout.split() == ["0", "0"]


@needs_syscalls
def test_others_cannot_be_signalled_or_limited(tmp_path: Path) -> None:
    me = os.getpid()
    found = attempts(
        {
            "kill": f"os.kill({me}, 0)",
            "group": "os.killpg(os.getpgid(0), 0)",
            "limits": f"resource.prlimit({me}, resource.RLIMIT_CORE, (0, 0))",
            "session": "os.setsid()",
            "priority": f"os.setpriority(os.PRIO_PROCESS, {me}, 19)",
        },
        tmp_path,
    )
    assert set(found.values()) == {"PermissionError:1"}


@needs_files
def test_files_of_others_cannot_be_read_or_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = attempts(
        {
            "secret": f"open({str(secret)!r}).read()",
            "passwords": "open('/etc/passwd').read()",
            "parent": f"open('/proc/{os.getpid()}/environ').read()",
            "list": f"os.listdir({str(tmp_path)!r})",
            "write": f"open({str(secret)!r}, 'w')",
            "create": f"open({str(tmp_path / 'new')!r}, 'w')",
            "code": f"open({str(ROOT / 'apps' / 'files' / 'evil.py')!r}, 'w')",
            "remove": f"os.unlink({str(secret)!r})",
            "link": f"os.symlink('/etc', {str(scratch / 'link')!r})",
        },
        scratch,
    )
    assert set(found.values()) == {"PermissionError:13"}
    assert secret.read_text() == "mine"


@needs_files
def test_its_own_folder_is_enough_to_work_in(tmp_path: Path) -> None:
    works = {"write": "open('a', 'w').write('x')", "read": "open('a').read()", "gone": "os.unlink('a')"}
    found = attempts(works, tmp_path)
    assert found == {"write": "1", "read": "'x'", "gone": "None"}


def test_memory_is_bounded(tmp_path: Path) -> None:
    found = attempts({"much": "len(bytearray(2 << 30))", "some": "len(bytearray(64 << 20))"}, tmp_path)
    assert found == {"much": "MemoryError:", "some": str(64 << 20)}


def test_files_are_bounded(tmp_path: Path) -> None:
    write = "open('big', 'wb').write(b'x' * (4 << 20))"
    done = inside(f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nprint(attempt(lambda: {write}))", tmp_path)
    assert done.stdout.startswith("OSError:27"), done.stderr
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_descriptors_are_bounded(tmp_path: Path) -> None:
    found = attempts({"many": "[os.dup(0) for _ in range(1000)]"}, tmp_path)
    assert found == {"many": "OSError:24"}


def test_cpu_is_bounded(tmp_path: Path) -> None:
    done = inside("while True: pass", tmp_path, cpu_s=1)
    assert done.returncode in (-9, -24)


def test_limits_cannot_be_raised_again(tmp_path: Path) -> None:
    if os.geteuid() == 0 and REPORT.network != "namespace":
        pytest.skip("root keeps the right to raise limits outside a user namespace")
    code = "resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))"
    done = inside(f"try:\n    {code}\nexcept (ValueError, OSError): print('refused')", tmp_path)
    assert done.stdout.strip() == "refused", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="there is no parent-death signal elsewhere")
def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child = _INSIDE + "print(os.getpid(), flush=True); time.sleep(60)"
    options = json.dumps(
        {
            "memory_bytes": 1 << 29, "cpu_s": 9, "file_bytes": 1, "readable": readable_paths(),
            "writable": str(tmp_path), "may_exec": False,
        }
    )  # fmt: skip
    parent = (
        "import subprocess, sys, os\n"
        f"child = subprocess.Popen([sys.executable, '-I', '-c', {child!r}, {str(ROOT)!r}, {options!r}], "
        "stdout=subprocess.PIPE)\n"
        f"open({str(note)!r}, 'wb').write(child.stdout.readline())\nos.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-I", "-c", parent], check=False, timeout=30)
    import time

    import psutil

    pid = int(note.read_text())
    deadline = time.monotonic() + 3
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
