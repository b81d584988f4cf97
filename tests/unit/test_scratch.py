"""Temporary folders: there while they are used, removed when their process was killed, by whoever comes next."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from apps.core import scratch
from infra.local.layout import REPOSITORY


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(folder: Path) -> None:
    then = time.time() - 2 * scratch.GRACE_S
    os.utime(folder, (then, then))


def test_a_folder_is_gone_with_its_block(own_folder: Path) -> None:
    with scratch.scratch("test") as folder:
        (folder / "text").write_text("a")
        assert [path.name for path in own_folder.iterdir()] == [folder.name]
    assert list(own_folder.iterdir()) == []


def test_what_is_in_use_stays_however_old() -> None:
    with scratch.scratch("test") as folder:
        age(folder)
        assert scratch.clear() == 0
        assert folder.exists()


def test_what_a_killed_process_left_is_removed_and_a_new_one_is_not(own_folder: Path) -> None:
    code = (
        "import os, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from apps.core.scratch import Scratch\n"
        "made = Scratch('test'); (made.path / 'text').write_text('secret'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(own_folder)], cwd=REPOSITORY, check=False)
    (left,) = own_folder.iterdir()
    assert scratch.clear() == 0, "it may be about to be locked"
    age(left)
    assert scratch.clear() == 1
    assert list(own_folder.iterdir()) == []


def test_others_folders_are_left_alone(own_folder: Path) -> None:
    other = own_folder / "parley-stores-x"
    other.mkdir()
    link = own_folder / f"{scratch.PREFIX}link"
    link.symlink_to(other)
    age(other)
    assert scratch.clear() == 0
    assert other.exists()
