"""What is wrong with this installation, and what to do: the checks behind `manage.py doctor`.

Responsible for the checks of what all apps stand on. An app adds its own in a module `checkup` with a function
`check() -> list[Finding]`. Leaves printing to the command.
"""

from apps.core.checkup.collect import examine
from apps.core.checkup.types import Finding, Level, fail, ok, warn

__all__ = ["Finding", "Level", "examine", "fail", "ok", "warn"]
