"""Where things are: the checkout, what is installed for it, and the state it keeps."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Layout:
    """Paths of one checkout. `home` holds what can be installed again, `state` what cannot."""

    repository: Path
    state: Path

    @classmethod
    def of_environment(cls, repository: Path = REPOSITORY) -> Layout:
        named = os.environ.get("PARLEY_STATE_DIR")
        return cls(repository, Path(named).expanduser().resolve() if named else repository / ".parley")

    @property
    def home(self) -> Path:
        return self.repository / ".parley"

    @property
    def tools(self) -> Path:
        return self.home / "tools"

    @property
    def engine(self) -> Path:
        return self.home / "vllm"

    @property
    def engine_python(self) -> Path:
        return self.engine / "bin" / "python"

    @property
    def venv(self) -> Path:
        return Path(os.environ.get("UV_PROJECT_ENVIRONMENT") or self.repository / ".venv")

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def stamps(self) -> Path:
        return self.home / "stamps"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def status_file(self) -> Path:
        return self.run / "status.json"

    @property
    def connections(self) -> Path:
        """Addresses and passwords of the running pieces, for commands started by hand."""
        return self.state / "connections.env"

    @property
    def system_data(self) -> Path:
        """Where Postgres may live when this checkout is closed to every user but root."""
        digest = hashlib.sha256(str(self.state).encode()).hexdigest()[:10]
        return Path(f"/var/lib/parley-{digest}")

    @property
    def mark(self) -> str:
        """Carried in the environment of every process we start, so that leftovers can be found."""
        return hashlib.sha256(str(self.state).encode()).hexdigest()[:16]

    def inherited(self) -> dict[str, str]:
        """Our own environment for processes that we start.

        Where Python may not leave compiled files beside sources, they go below `home` instead: without them every
        start of every process compiles all its modules anew, for five seconds or more.
        """
        kept = dict(os.environ)
        if kept.pop("PYTHONDONTWRITEBYTECODE", "") and "PYTHONPYCACHEPREFIX" not in kept:
            kept["PYTHONPYCACHEPREFIX"] = str(self.home / "cache" / "python")
        return kept

    def prepare(self) -> None:
        """Create the folders. `state` lets others pass through (Postgres may run as another user), not read."""
        for folder, mode in ((self.home, 0o711), (self.state, 0o711), (self.logs, 0o700), (self.run, 0o700)):
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                sys.exit(
                    f"{folder} belongs to another user, probably because Parley was once started with sudo.\n"
                    f"Give it back: sudo chown -R $(id -un) {folder}"
                )
            folder.chmod(mode)
