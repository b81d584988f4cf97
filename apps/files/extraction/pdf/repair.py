"""PDF files that break off before their index: the object that a reader starts from is found, and an end put behind."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator

_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_OBJECT = re.compile(rb"(\d{1,9})\s+(\d{1,5})\s+obj\b")
_REACH = 4_000  # how far before its type an object may begin
_ENCRYPTED = b"/Encrypt"


def ended(data: mmap.mmap) -> Iterator[bytes]:
    """The file with an end, as it could be meant; nothing where what it begins with or what opens it is gone."""
    places = [found.start() for found in _CATALOG.finditer(data)]
    if not places or data.find(_ENCRYPTED) >= 0:
        return
    objects = list(_OBJECT.finditer(data, max(0, places[-1] - _REACH), places[-1]))
    if not objects:
        return
    end = b"\ntrailer<</Root %s %s R>>\n%%%%EOF\n" % objects[-1].groups()
    whole = data[:]
    yield whole + b"\nendstream\nendobj" + end
    yield whole[: whole.rfind(b"endobj") + len(b"endobj")] + end
