"""Entry point. Written for any Python 3, so that an old one gets a sentence instead of a syntax error."""

import os
import shutil
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)


def newer_python():
    # type: () -> str | None
    """A supported interpreter on PATH, for the case that `python3` itself is too old or too new."""
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        path = shutil.which("python3.%d" % minor)
        if path:
            return path
    return None


if not OLDEST <= sys.version_info[:2] <= NEWEST:
    found = newer_python()
    if found is None:
        sys.exit(
            "Parley needs Python %d.%d to %d.%d; this is %d.%d (%s).\n"
            "Install one of them (Debian: apt install python3.11 python3.11-venv) and run the command again."
            % (OLDEST + NEWEST + sys.version_info[:2] + (sys.executable,))
        )
    os.execv(found, [found, "-m", "infra.local"] + sys.argv[1:])

from infra.local.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
