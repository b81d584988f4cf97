"""Mails as they lie about on disks: in UTF-16, in boxes, with parts that are not what they are said to be."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.reading import read

HEAD = b"From: ada@example.org\nSubject: Tides\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_mail_saved_in_utf16(tmp_path: Path, encoding: str) -> None:
    data = (HEAD.decode() + "Content-Type: text/plain; charset=utf-16\n\nhigh wäter\n").encode(encoding)
    assert read(tmp_path, "a.eml", data).texts == ["Tides", "From: ada@example.org", "high wäter"]


def test_parts_that_are_announced_and_are_not_there(tmp_path: Path) -> None:
    data = HEAD + b"Content-Type: multipart/mixed\n\nthe body all the same\n"
    assert read(tmp_path, "a.eml", data).texts[-1] == "the body all the same"


def test_a_mail_inside_that_is_packed_like_a_file(tmp_path: Path) -> None:
    inner = base64.b64encode(b"Subject: Inner\n\nthe inner text\n")
    part = b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n" + inner
    data = HEAD + b"Content-Type: multipart/mixed; boundary=x\n\n--x\n" + part + b"\n--x--\n"
    assert read(tmp_path, "a.eml", data).texts[-2:] == ["Inner", "the inner text"]


def test_a_box_of_mails_and_a_mail_of_apples(tmp_path: Path) -> None:
    mark = b"From ada@example.org Mon Jan  1 10:00:00 2024\n"
    box = mark + HEAD + b"\nlow water\n>From noon on\n\nFrom here it rises\n\n" + mark + b"Subject: Ebb\n\nsecond\n"
    assert read(tmp_path, "a.mbox", box).texts == [
        "Tides", "From: ada@example.org", "low water\nFrom noon on", "From here it rises", "Ebb", "second",
    ]  # fmt: skip
    mail = HEAD + b"\nthe text\n"
    apple = b"%d  \n%s<?xml version='1.0'?><plist/>" % (len(mail), mail)
    assert read(tmp_path, "a.emlx", apple).texts[-1] == "the text"
