"""The command line and environment of a vLLM replica.

Responsible for: flags by device and by manifest, and the environment. Pure functions; leaves running it to
`replica_process`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inference.manifest import FlagValue, ModelSpec
from inference.protocol import Purpose
from inference.settings import Settings

# Between SIGTERM and the end: answers in progress were waited for before, this is for stragglers.
SHUTDOWN_S = 5
_CPU_BLOCK = 32
_CPU_KV_GIB = "1"
_BF16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_UNWANTED_ENV = ("REDIS_URL", "DATABASE_URL", "S3_ACCESS_KEY", "S3_SECRET_KEY")


@dataclass(frozen=True, slots=True)
class Command:
    arguments: tuple[str, ...]
    environment: dict[str, str]


def device_of(spec: ModelSpec, settings: Settings) -> str:
    return settings.device if spec.device == "auto" else spec.device


@cache
def cpu_dtype(info: Path = Path("/proc/cpuinfo")) -> str:
    """bfloat16 where the processor multiplies it; emulated, reading a long question takes minutes."""
    try:
        known = set(info.read_text().split())
    except OSError:
        known = set()
    return "bfloat16" if known & _BF16 else "float32"


def build_command(
    spec: ModelSpec, folder: Path, port: int, settings: Settings, environment: Mapping[str, str]
) -> Command:
    """What the manifest says wins over what fits the device."""
    cpu = device_of(spec, settings) == "cpu"
    flags: dict[str, FlagValue] = {
        "model": str(folder),
        "served-model-name": spec.id,
        "host": settings.replica_host,
        "port": port,
        "max-num-seqs": spec.slots,
        **_for_purpose(spec),
        "dtype": cpu_dtype() if cpu and spec.dtype == "auto" else spec.dtype,
        "enable-request-id-headers": True,
        "shutdown-timeout": SHUTDOWN_S,
        "uvicorn-log-level": "warning",
    }
    if spec.context_length is not None:
        flags["max-model-len"] = spec.context_length
    if cpu:
        flags |= {"enforce-eager": True, "block-size": _CPU_BLOCK}
    flags |= spec.args
    return Command(
        (str(settings.engine_python), "-m", "vllm.entrypoints.openai.api_server", *_as_arguments(flags)),
        _environment(spec, environment, cpu=cpu),
    )


def _for_purpose(spec: ModelSpec) -> dict[str, FlagValue]:
    """A request to pool holds many texts, each of which vLLM would count in its queue: places bound those alone."""
    if spec.purpose is not Purpose.CHAT:
        return {"runner": "pooling"}
    return {
        "max-num-queued-reqs": spec.slots + spec.queue,
        "scheduling-policy": "priority",
        "enable-prefix-caching": True,
        "enable-prompt-tokens-details": True,
        "enable-scale-out": True,
        # Without a parser vLLM refuses tools. What this one misses is read from the text.
        "enable-auto-tool-choice": True,
        "tool-call-parser": "hermes",
    }


def _as_arguments(flags: Mapping[str, FlagValue]) -> list[str]:
    arguments: list[str] = []
    for name, value in flags.items():
        if value is True:
            arguments.append(f"--{name}")
        elif value is False:
            arguments.append(f"--no-{name}")
        elif isinstance(value, list):
            arguments += [f"--{name}", *value]
        else:
            arguments += [f"--{name}", str(value)]
    return arguments


def _environment(spec: ModelSpec, environment: Mapping[str, str], *, cpu: bool) -> dict[str, str]:
    """Ours without our secrets: a replica has no business with them."""
    kept = {
        k: v
        for k, v in environment.items()
        if k not in _UNWANTED_ENV and not (k.startswith("PARLEY_") and k.endswith(("SECRET", "KEY", "PASSWORD")))
    }
    ours = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    if cpu:
        ours["VLLM_CPU_KVCACHE_SPACE"] = _CPU_KV_GIB
    return {**kept, **ours, **spec.env}
