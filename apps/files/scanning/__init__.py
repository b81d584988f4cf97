"""What a file really is and whether it may go on to a parser: true type, archive bounds, malware."""

from __future__ import annotations

from apps.files.scanning.content import Inspected, inspect

__all__ = ["Inspected", "inspect"]
