"""The command line behind the Makefile: `python3 -m infra.local COMMAND`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from infra.local import status, supervisor
from infra.local.bootstrap import bootstrap
from infra.local.console import paint, say
from infra.local.layout import Layout
from infra.local.secret_store import BadSecret
from infra.local.steps import StepFailed

PASSING_ON = ("test", "check", "bench", "test-faults", "doctor", "lock", "env")
"""Commands that hand all their arguments on, to pytest for instance."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python3 -m infra.local", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for name, text in (("up", "install what is missing and start everything"), ("serve", "start everything")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--detach", action="store_true", help="return once it serves")
        command.add_argument("--quiet", action="store_true", help="logs go to files only")
        command.add_argument("--with-s3", action="store_true", help="keep files in a local S3 server")
        command.add_argument("--no-engine", action="store_true", help="start no model")
    setup = commands.add_parser("setup", help="install what is missing and stop there")
    setup.add_argument("--tests", action="store_true", help="development packages too")
    setup.add_argument("--no-engine", action="store_true", help="without the inference engine")
    commands.add_parser("down", help="stop everything")
    state = commands.add_parser("status", help="what runs")
    state.add_argument("--json", action="store_true")
    for name in PASSING_ON:
        commands.add_parser(name, help="see the Makefile", add_help=False)
    clean = commands.add_parser("clean", help="remove what was installed and built")
    clean.add_argument("--data", action="store_true", help="and everything people stored")
    return top


def main(arguments: Sequence[str]) -> int:
    try:
        return _run(*_parse(arguments))
    except (StepFailed, BadSecret) as failure:
        say(paint(f"\n{failure}", "red"))
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted; what was finished is kept.")
        return 130


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, Sequence[str]]:
    """The command's own options, and what it passes on. argparse cannot pass on what begins with a dash."""
    if arguments and arguments[0] in PASSING_ON:
        return parser().parse_args(arguments[:1]), arguments[1:]
    return parser().parse_args(arguments), ()


def _run(asked: argparse.Namespace, rest: Sequence[str]) -> int:
    layout = Layout.of_environment()
    if asked.command in ("up", "serve"):
        return _up(layout, asked)
    if asked.command == "setup":
        bootstrap(layout, tests=asked.tests, with_engine=not asked.no_engine)
        return 0
    if asked.command == "down":
        return status.down(layout)
    if asked.command == "status":
        return status.show(layout, as_json=asked.json)
    # Imported here: the other commands must start fast and need none of it.
    from infra.local import tasks

    if asked.command == "clean":
        return tasks.clean(layout, data=asked.data)
    return tasks.run(layout, asked.command, rest)


def _up(layout: Layout, asked: argparse.Namespace) -> int:
    options = [f"--{name.replace('_', '-')}" for name in ("with_s3", "no_engine") if getattr(asked, name)]
    if asked.command == "serve":
        return supervisor.serve(layout, quiet=asked.quiet, with_s3=asked.with_s3, with_engine=not asked.no_engine)
    if status.current(layout)["state"] in ("starting", "ready"):
        say(f"Parley already runs from this folder. Open  {status.current(layout)['url']}")
        return 0
    if os.geteuid() == 0:
        say("  You are root. That works (Postgres runs as another user), but an ordinary user is safer.")
    bootstrap(layout, with_engine=not asked.no_engine)
    if asked.detach:
        return supervisor.serve_detached(layout, options)
    quiet = ["--quiet"] if asked.quiet else []
    # From here on in the project's own environment.
    sys.stdout.flush()
    os.chdir(layout.repository)
    os.execv(layout.python, [str(layout.python), "-m", "infra.local", "serve", *quiet, *options])
    return 0
