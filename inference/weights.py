"""Weights on disk, once: found, checked, downloaded or converted, then served from the state folder.

    python -m inference.weights [--manifest FILE]

Responsible for: one folder a model version, complete or absent (written aside, then renamed), one process at a time,
and progress. Leaves the formats to `convert_gguf` and `fetch_hub`, which run in the engine's environment.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from inference.digests import tokenizer_digest, weights_digest
from inference.manifest import HubWeights, ManifestError, ModelSpec, PackageWeights, PathWeights, load_manifest
from inference.settings import Settings, read_settings

# Part of the folder's name: a change of the conversion makes new weights.
_CONVERSION = "2"
_MARK = "parley.json"
_FETCH_S = 6 * 3600
_CONVERT_S = 3600

Progress = Callable[[str], None]


class WeightsError(Exception):
    """The weights cannot be had; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Weights ready to serve. Digests of their content say when two replicas hold the same."""

    folder: Path
    weights_digest: str
    tokenizer_digest: str

    @property
    def tokenizer_file(self) -> Path:
        return self.folder / "tokenizer.json"


async def prepare_weights(spec: ModelSpec, settings: Settings, progress: Progress) -> Prepared:
    """The folder to serve `spec` from, made now if it was not yet. WeightsError."""
    weights = spec.weights
    if isinstance(weights, HubWeights):
        key = _key("hub", weights.hub, weights.revision)
        return await _once(spec, settings, key, lambda to: _fetch(weights, to, settings, progress))
    if weights is None:
        raise WeightsError("no weights are named")
    if isinstance(weights, PathWeights) and weights.path.is_dir():
        return await asyncio.to_thread(_describe, weights.path)
    source = await _find_file(weights, settings)
    if source.suffix != ".gguf":
        raise WeightsError(f"{source} is neither a folder nor a .gguf file")
    wanted = weights.sha256
    content = await asyncio.to_thread(_sha256, source) if wanted is None else wanted
    key = _key("gguf", content, _CONVERSION)
    return await _once(spec, settings, key, lambda to: _convert(source, wanted, to, settings, progress))


async def _find_file(weights: PackageWeights | PathWeights, settings: Settings) -> Path:
    if isinstance(weights, PathWeights):
        if not weights.path.exists():
            raise WeightsError(f"{weights.path} does not exist")
        return weights.path
    module = weights.package.replace("-", "_")
    code = "import importlib.util as u,sys; s=u.find_spec(sys.argv[1]); print(s.origin if s else '')"
    found = (await _run(settings, ("-c", code, module), 60)).strip()
    file = Path(found).parent / weights.file
    if not found or not file.is_file():
        raise WeightsError(f"the package {weights.package} with {weights.file} is not installed beside the engine")
    return file


async def _once(spec: ModelSpec, settings: Settings, key: str, make: Callable[[Path], Awaitable[None]]) -> Prepared:
    """`key` tells versions apart before there is any content."""
    target = settings.weights_dir / f"{spec.id.replace(':', '_')}-{key[:12]}"
    if not (target / _MARK).exists():
        settings.weights_dir.mkdir(parents=True, exist_ok=True)
        async with _alone(target.with_suffix(".lock")):
            if not (target / _MARK).exists():
                await _make(target, key, make)
    return await asyncio.to_thread(_describe, target)


async def _make(target: Path, key: str, make: Callable[[Path], Awaitable[None]]) -> None:
    aside = target.with_name(f"{target.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        await make(aside)
        (aside / _MARK).write_bytes(orjson.dumps({"made_from": key}))
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    except OSError as error:
        raise WeightsError(f"{target} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@asynccontextmanager
async def _alone(lock: Path) -> AsyncIterator[None]:
    """One process converts; others wait until it is done, or has died."""
    with lock.open("w") as handle:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(0.5)
        yield


async def _convert(source: Path, sha256: str | None, target: Path, settings: Settings, progress: Progress) -> None:
    progress("checking weights")
    if sha256 is not None and (found := await asyncio.to_thread(_sha256, source)) != sha256:
        raise WeightsError(f"{source.name} is damaged or another version: sha256 is {found}, expected {sha256}")
    script = Path(__file__).with_name("convert_gguf.py")
    await _run(settings, (str(script), str(source), str(target)), _CONVERT_S, progress)


async def _fetch(weights: HubWeights, target: Path, settings: Settings, progress: Progress) -> None:
    script = Path(__file__).with_name("fetch_hub.py")
    await _run(settings, (str(script), weights.hub, weights.revision, str(target)), _FETCH_S, progress)


async def _run(settings: Settings, arguments: Sequence[str], within_s: float, progress: Progress | None = None) -> str:
    """Standard output of the engine's Python. Lines that are progress are told; the last error lines explain."""
    if not settings.engine_python.exists():
        raise WeightsError("the inference engine is not installed (make up installs it)")
    offline = {} if progress and "fetch_hub" in arguments[0] else {"HF_HUB_OFFLINE": "1"}
    process = await asyncio.create_subprocess_exec(
        str(settings.engine_python),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **offline, "PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(within_s):
            errors = asyncio.create_task(process.stderr.read())
            lines = [_tell(line, progress) async for line in process.stdout]
            said = await errors
            status = await process.wait()
    except TimeoutError:
        raise WeightsError(f"it took longer than {within_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status != 0:
        tail = said.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no word"]
        raise WeightsError(f"preparing the weights failed: {tail[0][:500]}")
    return "".join(lines)


def _tell(line: bytes, progress: Progress | None) -> str:
    if progress is not None and line.startswith(b'{"phase"'):
        with suppress(orjson.JSONDecodeError):
            progress(str(orjson.loads(line)["phase"]))
    return line.decode("utf-8", "replace")


def _describe(folder: Path) -> Prepared:
    """WeightsError when a folder lacks what a served model needs."""
    if not (folder / "config.json").exists():
        raise WeightsError(f"{folder} has no config.json: it is not a model that transformers saved")
    try:
        return Prepared(folder, weights_digest(folder), tokenizer_digest(folder))
    except OSError as error:
        raise WeightsError(f"{folder} cannot be read: {error.strerror}") from None


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


async def _main() -> int:
    parser = argparse.ArgumentParser(description="Download or convert the weights of all models that run here.")
    parser.add_argument("--manifest", type=Path)
    settings = read_settings(manifest=parser.parse_args().manifest)
    try:
        models = load_manifest(settings.manifest).models
        for spec in (m for m in models if m.local_replicas):
            prepared = await prepare_weights(spec, settings, partial(_print_phase, spec.id))
            _print(f"{spec.id}: ready in {prepared.folder}")
    except (ManifestError, WeightsError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _print_phase(model: str, phase: str) -> None:
    _print(f"{model}: {phase}")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
