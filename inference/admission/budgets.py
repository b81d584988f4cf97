"""The operator's budgets: a small YAML file, read into a policy.

Responsible for: the file's shape and its errors, with the line that is wrong. Leaves to `policy` every other number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inference.admission.policy import DEFAULT, Budget, Policy
from inference.admission.types import Tier

DEFAULT_BUDGETS = Path(__file__).parents[1] / "budgets.yaml"
MOST_BYTES = 64 << 10
DEPTH = 3


class BudgetsError(ValueError):
    """The file cannot be used; the message names it, the line and what is wrong there."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _Limits(_Strict):
    runs: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    tokens_per_s: Annotated[float, Field(ge=0, le=1e9)] | None = None

    def over(self, budget: Budget) -> Budget:
        """The budget, with what the file says in place of its own."""
        return Budget(
            budget.concurrency if self.runs is None else self.runs,
            budget.tokens_per_s if self.tokens_per_s is None else self.tokens_per_s,
        )


class _OfTier(_Strict):
    user: _Limits = _Limits()
    organization: _Limits = _Limits()


class _File(_Strict):
    burst_s: Annotated[float, Field(ge=1, le=86_400)] = DEFAULT.burst_s
    free: _OfTier = _OfTier()
    plus: _OfTier = _OfTier()
    enterprise: _OfTier = _OfTier()

    def policy(self) -> Policy:
        said: dict[Tier, _OfTier] = {tier: getattr(self, tier) for tier in Tier}
        return replace(
            DEFAULT,
            burst_s=self.burst_s,
            users={tier: limits.user.over(DEFAULT.users[tier]) for tier, limits in said.items()},
            organizations={
                tier: limits.organization.over(DEFAULT.organizations[tier]) for tier, limits in said.items()
            },
        )


def read_policy(path: Path) -> Policy:
    """The default policy with the file's budgets. BudgetsError when it is missing, no YAML, or says what cannot be."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BudgetsError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise BudgetsError(f"{path}: is longer than {MOST_BYTES >> 10} KiB")
    return parse_policy(data, str(path))


def parse_policy(data: bytes, source: str = "budgets") -> Policy:
    try:
        node = yaml.compose(data, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise BudgetsError(f"{source}{where}: is not YAML: {getattr(error, 'problem', None) or error}") from None
    if doubled := next(_doubled(node, DEPTH), None):
        raise BudgetsError(f"{source}, line {_line(doubled)}: {doubled.value} is said twice")
    try:
        return _File.model_validate({} if raw is None else raw).policy()
    except ValidationError as error:
        lines = [f"line {_line_of(node, e['loc'])}: {_place(e['loc'])}: {_words(e)}" for e in error.errors()]
        raise BudgetsError(f"{source} cannot be used:\n  " + "\n  ".join(dict.fromkeys(lines))) from None


def _doubled(node: yaml.Node | None, depth: int) -> Iterator[yaml.Node]:
    """Keys that their mapping has already: YAML would take the last without a word."""
    if not isinstance(node, yaml.MappingNode) or depth == 0:
        return
    seen = set()
    for key, value in node.value:
        if key.value in seen:
            yield key
        seen.add(key.value)
        yield from _doubled(value, depth - 1)


def _line(node: yaml.Node | None) -> int:
    return int(node.start_mark.line) + 1 if node else 1


def _line_of(node: yaml.Node | None, location: Sequence[int | str]) -> int:
    """Of the last key of the location that is written in the file."""
    line = _line(node)
    for part in location:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        key, node = next(((key, value) for key, value in pairs if key.value == str(part)), (None, None))
        if key is None:
            break
        line = _line(key)
    return line


def _place(location: Sequence[int | str]) -> str:
    return ", ".join(map(str, location)) or "the file"


def _words(error: Any) -> str:
    words: dict[str, str] = {
        "extra_forbidden": "there is no such setting",
        "model_type": "a mapping such as `user: {runs: 8}` belongs here",
    }
    message = str(error["msg"])
    return words.get(error["type"], message[:1].lower() + message[1:])
