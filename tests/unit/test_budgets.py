"""The operator's budgets: what the file may say, and what is told of a file that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inference.admission import DEFAULT_BUDGETS, Budget, BudgetsError, Tier, read_policy
from inference.admission.budgets import MOST_BYTES, parse_policy
from inference.admission.policy import DEFAULT
from infra.local.layout import REPOSITORY


def test_the_file_that_comes_with_the_install_says_what_holds_without_one() -> None:
    assert read_policy(DEFAULT_BUDGETS) == DEFAULT
    assert parse_policy(b"") == DEFAULT
    assert parse_policy(b"# nothing but words\n") == DEFAULT


def test_what_a_file_leaves_out_is_as_it_was() -> None:
    policy = parse_policy(b"burst_s: 10\nfree:\n  user: {runs: 2}\n  organization: {tokens_per_s: 1.5}\n")
    assert policy.burst_s == 10
    assert policy.users[Tier.FREE] == Budget(2, DEFAULT.users[Tier.FREE].tokens_per_s)
    assert policy.organizations[Tier.FREE] == Budget(0, 1.5)
    assert policy.users[Tier.PLUS] == DEFAULT.users[Tier.PLUS]
    assert policy.organizations[Tier.ENTERPRISE] == DEFAULT.organizations[Tier.ENTERPRISE]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("free:\n  user:\n    runs: -1\n", "line 3: free, user, runs: input should be greater"),
        ("free:\n  user:\n    runs: many\n", "line 3: free, user, runs: input should be a valid integer"),
        ("free:\n  user: {runs: 1.5}\n", "line 2: free, user, runs: input should be a valid integer"),
        ("\n\nfree:\n  user: {run: 1}\n", "line 4: free, user, run: there is no such setting"),
        ("plus: {}\npremium: {}\n", "line 2: premium: there is no such setting"),
        ("plus:\n  user: 3\n", "line 2: plus, user: a mapping"),
        ("burst_s: .nan\n", "line 1: burst_s: input should be a finite number"),
        ("burst_s: 0\n", "line 1: burst_s: input should be greater"),
        ("- free\n", "line 1: the file: a mapping"),
        ("free: {}\nplus: {}\nfree: {}\n", "line 3: free is said twice"),
        ("free: {user: {runs: 1,\n runs: 2}}\n", "line 2: runs is said twice"),
        ("free: {user: {runs: 1}\nplus: 1\n", "line 2: is not YAML"),
        ("free: &x {user: *x}\n", "line 1: free, user"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(BudgetsError) as error:
        parse_policy(text.encode(), "b.yaml")
    assert str(error.value).startswith("b.yaml")
    assert told in str(error.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BudgetsError) as error:
        parse_policy(b"free: {user: {runs: -1}}\nplus: {user: {runs: x}}\n")
    assert ["line 1" in str(error.value), "line 2" in str(error.value)] == [True, True]


def test_a_file_that_is_not_there_or_far_too_long_is_told(tmp_path: Path) -> None:
    with pytest.raises(BudgetsError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.yaml")
    (tmp_path / "long.yaml").write_text("#" * (MOST_BYTES + 1))
    with pytest.raises(BudgetsError, match="longer than 64 KiB"):
        read_policy(tmp_path / "long.yaml")


@pytest.mark.parametrize(("text", "starts"), [("free:\n  user: {runs: none}\n", False), ("free: {}\n", True)])
def test_no_process_starts_with_budgets_that_cannot_be_used(tmp_path: Path, text: str, starts: bool) -> None:
    path = tmp_path / "budgets.yaml"
    path.write_text(text)
    kept = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    ended = subprocess.run(
        [sys.executable, "-c", "import apps.config.settings.base"],
        cwd=REPOSITORY,
        env={**kept, "PARLEY_BUDGETS": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) is starts, ended.stderr
    if not starts:
        assert "line 2: free, user, runs" in ended.stderr.splitlines()[-1]
