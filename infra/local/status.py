"""What runs, for people and scripts, and how to stop it from outside."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

from infra.local.console import paint, say
from infra.local.layout import Layout
from infra.local.processes import Identity, end_all, marked
from infra.local.supervisor import read_status

# The sum of what an orderly stop may take, and a little.
STOP_PATIENCE = 120.0


def current(layout: Layout) -> dict[str, Any]:
    """The supervisor's own account, corrected by whether its processes are alive."""
    found: dict[str, Any] = dict(read_status(layout.status_file))
    if not found or not Identity(found["pid"], found["started"]).alive:
        left = len(marked(layout.mark))
        return {"state": "left over" if left else "stopped", "pieces": [], "leftovers": left}
    for row in found["pieces"]:
        if row["pid"] and not Identity(row["pid"], row["started"]).alive and row["state"] == "ready":
            row["state"] = "failing"
    return found


def show(layout: Layout, *, as_json: bool) -> int:
    """Print the status. 0: all pieces serve; 1: some do not; 3: Parley does not run."""
    found = current(layout)
    serving = found["state"] == "ready" and all(row["state"] in ("ready", "starting") for row in found["pieces"])
    if as_json:
        say(json.dumps(found, indent=1))
    else:
        _table(found)
    if found["state"] in ("stopped", "left over"):
        return 3
    return 0 if serving else 1


def _table(found: dict[str, Any]) -> None:
    if found["state"] == "left over":
        say(f"Parley does not run, but left {found['leftovers']} processes; `make down` ends them.")
        return
    if found["state"] == "stopped":
        say("Parley does not run. Start it: make up")
        return
    say(f"Parley is {found['state']}: {found['url']}  (supervisor is process {found['pid']})\n")
    say(f"  {'piece':<10} {'state':<9} {'process':>8} {'restarts':>8}  {'for':>8}  address")
    for row in found["pieces"]:
        colour = {"ready": "green", "failing": "red"}.get(row["state"], "yellow")
        state = paint(f"{row['state']:<9}", colour)
        lasting = _duration(time.time() - row["since"])
        note = row["address"] or row["reason"]
        say(f"  {row['name']:<10} {state} {row['pid'] or '':>8} {row['restarts']:>8}  {lasting:>8}  {note}")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def down(layout: Layout) -> int:
    """Stop a running Parley in order, or end what a killed one left."""
    found = read_status(layout.status_file)
    pid, started = found.get("pid"), found.get("started")
    if isinstance(pid, int) and isinstance(started, str) and Identity(pid, started).alive:
        say("Stopping Parley...")
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_PATIENCE
        while Identity(pid, started).alive:
            if time.monotonic() > deadline:
                say("It does not stop; killing it.")
                end_all([Identity(pid, started)], patience=0)
                break
            time.sleep(0.1)
    leftovers = marked(layout.mark)
    if leftovers:
        say(f"Ending {len(leftovers)} processes that were left.")
        end_all(leftovers)
    say("Parley has stopped." if found else "Parley did not run.")
    return 0
