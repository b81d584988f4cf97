"""The model manifest: which models are served, where their weights are, how their replicas run.

Responsible for: the file's shape and its errors, in words that tell what to change. Leaves to `weights` how they
are fetched, to `vllm_command` how a replica is started, and to `supervisor` when.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from inference.prober import parse_replica_urls
from inference.protocol import Purpose
from inference.registry import ModelCard
from inference.routing.types import Rule

DEFAULT_MANIFEST = Path(__file__).with_name("manifest.yaml")
_ID = re.compile(r"[a-z0-9][a-z0-9._:-]{0,63}")
_ENTRIES = {"models": ("model", "id"), "rules": ("rule", "name")}
_FLAG = re.compile(r"[a-z0-9][a-z0-9-]*")

FlagValue = bool | int | float | str | list[str]
Name = Annotated[str, Field(min_length=1, max_length=100)]


class ManifestError(ValueError):
    """The manifest cannot be used; the message names the file, the place and what is wrong there."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PackageWeights(_Strict):
    """A GGUF file inside a Python package of the engine's environment."""

    package: Name
    file: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HubWeights(_Strict):
    """A repository of the Hugging Face hub."""

    hub: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: str = "main"


class PathWeights(_Strict):
    """A folder as transformers saves it, or one GGUF file; `sha256` is checked for a file."""

    path: Path
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None


Weights = PackageWeights | HubWeights | PathWeights


class RemoteReplica(_Strict):
    """A server that someone else runs. `kind`: a router in front of many; None takes it from the URL. `api_key_env`
    names the environment variable with its key."""

    url: str
    kind: Literal["openai", "vllm-router", "llm-d", "dynamo", "ray"] | None = None
    slots: Annotated[int, Field(ge=1, le=100_000)] = 64
    served_model: str = ""
    region: str = ""
    api_key_env: str = ""
    capabilities: tuple[Literal["priority", "token_ids", "cache_salt", "usage", "continue"], ...] = ()

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        return parse_replica_urls(f"x={value}")[0][1]


class Sampling(_Strict):
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None


class ModelSpec(_Strict):
    """One entry. `level`: 1 is the smallest; between models of different levels `auto` chooses by the question.
    `slots`: answers a local replica gives at once; `queue`: how many more it takes before it refuses. `purpose`: a
    model that is not for chat is offered to nobody. `cannot`: what the model was not made for, so that `auto` gives it
    no such question."""

    id: str
    name: Name
    note: Annotated[str, Field(max_length=1000)] = ""
    demo: bool = False
    default: bool = False
    purpose: Purpose = Purpose.CHAT
    cannot: tuple[Literal["tools", "structured"], ...] = ()
    level: Annotated[int, Field(ge=1, le=9)] = 1
    cost_per_mtok: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    weights: Weights | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    context_length: Annotated[int, Field(ge=256, le=10_000_000)] | None = None
    slots: Annotated[int, Field(ge=1, le=4096)] = 8
    queue: Annotated[int, Field(ge=0, le=100_000)] = 8
    device: Literal["auto", "cpu", "gpu"] = "auto"
    args: dict[str, FlagValue] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    sampling: Sampling = Sampling()
    replicas: Annotated[int, Field(ge=0, le=64)] | tuple[RemoteReplica, ...] = 1

    @field_validator("id")
    @classmethod
    def _is_id(cls, value: str) -> str:
        if not _ID.fullmatch(value) or value == "auto":
            raise ValueError("an id is small letters, digits, `.`, `_`, `:` and `-`, at most 64, and not `auto`")
        return value

    @field_validator("args")
    @classmethod
    def _are_flags(cls, value: dict[str, FlagValue]) -> dict[str, FlagValue]:
        if wrong := [name for name in value if not _FLAG.fullmatch(name)]:
            raise ValueError(f"flags are written without dashes in front, like `max-num-seqs`: {', '.join(wrong)}")
        return value

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> ModelSpec:
        if self.local_replicas and self.weights is None:
            raise ValueError("replicas that run here need `weights`")
        if self.remote_replicas and self.weights is not None:
            raise ValueError("`weights` are for replicas that run here; these have URLs")
        if self.default and self.purpose is not Purpose.CHAT:
            raise ValueError("the default model answers, so its `purpose` is chat")
        return self

    @property
    def local_replicas(self) -> int:
        return self.replicas if isinstance(self.replicas, int) else 0

    @property
    def remote_replicas(self) -> tuple[RemoteReplica, ...]:
        return () if isinstance(self.replicas, int) else self.replicas

    @property
    def card(self) -> ModelCard:
        return ModelCard(
            id=self.id,
            name=self.name,
            context_length=self.context_length or 0,
            demo=self.demo,
            note=self.note,
            default=self.default,
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            level=self.level,
            cost_per_mtok=self.cost_per_mtok,
            purpose=self.purpose,
            cannot=self.cannot,
        )


class RuleSpec(_Strict):
    """One of `rules`: what `inference.routing.types.Rule` says, as it is written in the file."""

    name: Name
    level: Annotated[int, Field(ge=1, le=9)]
    fixed: bool = False
    needs: tuple[Literal["tools", "structured"], ...] = ()
    prompt_tokens_from: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    history_tokens_from: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    words_at_most: Annotated[int, Field(ge=0, le=10_000)] | None = None

    @property
    def rule(self) -> Rule:
        return Rule(**{**self.model_dump(), "needs": frozenset(self.needs)})


class Manifest(_Strict):
    models: tuple[ModelSpec, ...] = Field(min_length=1)
    rules: tuple[RuleSpec, ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _names_differ(self) -> Manifest:
        names = [rule.name for rule in self.rules]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules have the name {', '.join(doubled)}")
        return self

    @model_validator(mode="after")
    def _ids_differ(self) -> Manifest:
        ids = [m.id for m in self.models]
        if doubled := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"two models have the id {', '.join(doubled)}")
        if sum(m.default for m in self.models) > 1:
            raise ValueError("only one model can be the default")
        return self


def load_manifest(path: Path) -> Manifest:
    """ManifestError when the file is missing, is not YAML, or says something that cannot be."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    return parse_manifest(raw, str(path))


def parse_manifest(raw: Any, source: str = "manifest") -> Manifest:
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        lines = [f"  {_place(e['loc'], raw)}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
        raise ManifestError(f"{source} cannot be used:\n" + "\n".join(dict.fromkeys(lines))) from None


def _place(location: Sequence[int | str], raw: Any) -> str:
    """Where an error is, with models by their id and rules by their name, as in `smollm2-135m, slots`."""
    parts = [str(part) for part in location if not _is_type_name(part)]
    if len(parts) >= 2 and parts[0] in _ENTRIES and parts[1].isdigit():
        kind, key = _ENTRIES[parts[0]]
        entry = raw[parts[0]][int(parts[1])]
        named = entry.get(key) if isinstance(entry, dict) else None
        parts[:2] = [str(named or f"{kind} {int(parts[1]) + 1}")]
    return ", ".join(parts) or "the file"


def _is_type_name(part: int | str) -> bool:
    """Pydantic puts the tried alternative of a union into the location."""
    return isinstance(part, str) and (part.endswith("Weights") or "[" in part or part in ("int", "constrained-int"))
