"""Digests of what is in files of weights and tokenizers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from inference import digests
from inference.digests import tokenizer_digest, weights_digest

MANY = 40 << 20


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Small weights in two files, as transformers saves them."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_bytes(orjson.dumps({"hidden_size": 8, "transformers_version": "5.0"}))
    (folder / "model-1.safetensors").write_bytes(bytes(range(256)) * 400)
    (folder / "model-2.safetensors").write_bytes(bytes(range(255, -1, -1)) * 400)
    (folder / "tokenizer.json").write_text('{"vocab": {"a": 1}}')
    return folder


def change(file: str, at: int) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = bytearray((folder / file).read_bytes())
        content[at] ^= 1
        (folder / file).write_bytes(content)

    return apply


def configure(**facts: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "config.json").write_bytes(orjson.dumps(facts))

    return apply


def rename(folder: Path) -> None:
    (folder / "model-2.safetensors").rename(folder / "model-3.safetensors")


def test_a_copy_has_the_same_digests(model: Path) -> None:
    copy = Path(shutil.copytree(model, model.with_name("copy")))
    (copy / "README.md").write_text("A copy.")
    configure(transformers_version="5.1", hidden_size=8)(copy)
    assert weights_digest(copy) == weights_digest(model)
    assert tokenizer_digest(copy) == tokenizer_digest(model)


@pytest.mark.parametrize(
    "other",
    [
        change("model-1.safetensors", 0),
        change("model-2.safetensors", 102_399),
        configure(hidden_size=16),
        rename,
        lambda folder: (folder / "model-2.safetensors").unlink(),
    ],
    ids=["first byte", "last byte", "configuration", "name", "a file less"],
)
def test_other_weights_have_another(model: Path, other: Callable[[Path], None]) -> None:
    before, tokenizer = weights_digest(model), tokenizer_digest(model)
    other(model)
    assert weights_digest(model) != before
    assert tokenizer_digest(model) == tokenizer


def test_of_large_weights_little_is_read(model: Path) -> None:
    sizes = [MANY + 123, 5, MANY]
    places = digests._places(sizes)
    assert sum(map(len, places)) <= digests._SAMPLES + len(sizes)
    assert all(0 <= place < size for size, found in zip(sizes, places, strict=True) for place in found)

    file = model / "model-1.safetensors"
    with file.open("wb") as handle:
        handle.truncate(MANY)
    before = weights_digest(model)
    with file.open("r+b") as handle:
        # Other training changes everything; here it is the second half.
        handle.seek(MANY // 2)
        handle.write(b"x" * (MANY // 2))
    assert weights_digest(model) != before


def test_the_tokenizers_file_counts_and_older_forms_without_it(model: Path) -> None:
    first = tokenizer_digest(model)
    (model / "vocab.json").write_text("{}")
    assert tokenizer_digest(model) == first
    (model / "tokenizer.json").write_text('{"vocab": {"b": 1}}')
    assert tokenizer_digest(model) not in ("", first)
    (model / "tokenizer.json").unlink()
    older = tokenizer_digest(model)
    (model / "merges.txt").write_text("a b")
    assert tokenizer_digest(model) not in ("", older)
    for name in ("vocab.json", "merges.txt"):
        (model / name).unlink()
    assert tokenizer_digest(model) == ""


def test_a_configuration_that_is_no_json_counts_as_it_stands(model: Path) -> None:
    (model / "config.json").write_text("{")
    first = weights_digest(model)
    (model / "config.json").write_text("[]")
    assert weights_digest(model) != first
