"""The manifest's errors say where and what; the command line follows from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference.manifest import DEFAULT_MANIFEST, ManifestError, PackageWeights, load_manifest, parse_manifest
from inference.protocol import Purpose
from inference.routing.types import Rule
from inference.settings import Settings, read_settings
from inference.supervisor import models_to_run, remote_records
from inference.vllm_command import build_command, cpu_dtype
from infra.local.layout import REPOSITORY


def settings(tmp_path: Path, **environment: str) -> Settings:
    return read_settings({"PARLEY_STATE_DIR": str(tmp_path), "PARLEY_VLLM": "cpu", **environment})


def model(**facts: object) -> dict[str, Any]:
    return {"models": [{"id": "m", "name": "M", "weights": {"path": "/models/m"}, **facts}]}


def test_the_entry_that_the_page_shows_can_be_added() -> None:
    banner = (REPOSITORY / "frontend" / "src" / "features" / "chat" / "ModelBanner.tsx").read_text()
    (entry,) = re.findall(r"const ENTRY = `([^`]*)`", banner)
    served = yaml.safe_load(DEFAULT_MANIFEST.read_text())["models"]
    del served[0]["default"]
    added, before = parse_manifest({"models": yaml.safe_load(entry) + served}).models
    assert (added.default, before.default) == (True, False)


def ruled(*rules: object) -> dict[str, Any]:
    return model() | {"rules": list(rules)}


def test_rules_are_what_routing_goes_by() -> None:
    manifest = parse_manifest(
        ruled(
            {"name": "greeting", "level": 1, "fixed": True, "words_at_most": 3},
            {"name": "long", "level": 2, "history_tokens_from": 4000, "prompt_tokens_from": 10, "needs": ["tools"]},
        )
    )
    assert [spec.rule for spec in manifest.rules] == [
        Rule("greeting", 1, fixed=True, words_at_most=3),
        Rule("long", 2, needs=frozenset({"tools"}), prompt_tokens_from=10, history_tokens_from=4000),
    ]
    assert load_manifest(DEFAULT_MANIFEST).rules == ()


def test_the_default_manifest_serves_the_packaged_model() -> None:
    (only,) = load_manifest(DEFAULT_MANIFEST).models
    assert only.demo
    assert only.default
    assert only.card.temperature == 0.2
    assert only.card.top_p == 0.9
    assert "better" in only.note
    assert isinstance(only.weights, PackageWeights)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (None, ["the file", "dictionary"]),
        ({"models": []}, ["models", "at least 1"]),
        (model(slots=0), ["m, slots", "greater than or equal to 1"]),
        (model(colour="red"), ["m, colour", "not permitted"]),
        (model(id="With Space"), ["an id is small letters"]),
        (model(id="auto"), ["not `auto`"]),
        (model(weights=None), ["replicas that run here need `weights`"]),
        (model(args={"--model": "x"}), ["without dashes"]),
        (model(replicas=[{"url": "ftp://x"}], weights=None), ["m, replicas, 0, url", "http://host:port"]),
        (model(replicas=[{"url": "http://h:1"}]), ["`weights` are for replicas that run here"]),
        (model(weights={"hub": "no-slash"}), ["m, weights, hub"]),
        ({"models": [*model()["models"], *model()["models"]]}, ["two models have the id m"]),
        ({"models": [{"name": "M"}]}, ["model 1, id", "required"]),
        (model(sampling={"temperature": 9}), ["m, sampling, temperature"]),
        (model(purpose="vision"), ["m, purpose", "'chat', 'embeddings' or 'rerank'"]),
        (model(purpose="rerank", default=True), ["the default model answers"]),
        (ruled({"name": "r"}), ["r, level", "required"]),
        (ruled({"name": "r", "level": 10}), ["r, level", "less than or equal to 9"]),
        (ruled({"level": 1}), ["rule 1, name", "required"]),
        (ruled({"name": "r", "level": 1, "words_at_least": 3}), ["r, words_at_least", "not permitted"]),
        (ruled({"name": "r", "level": 1, "needs": ["sight"]}), ["r, needs, 0", "'tools' or 'structured'"]),
        (ruled({"name": "r", "level": 1}, {"name": "r", "level": 2}), ["two rules have the name r"]),
        (ruled("r"), ["rule 1", "dictionary"]),
    ],
)
def test_errors_say_where_and_what(raw: Any, words: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(raw, "models.yaml")
    assert str(caught.value).startswith("models.yaml cannot be used:")
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_is_missing_or_is_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        load_manifest(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("models: [")
    with pytest.raises(ManifestError, match="not YAML"):
        load_manifest(tmp_path / "bad.yaml")


def arguments(tmp_path: Path, environment: dict[str, str] | None = None, **facts: object) -> tuple[str, dict[str, str]]:
    (spec,) = parse_manifest(model(**facts)).models
    command = build_command(spec, Path("/weights"), 7000, settings(tmp_path), environment or {})
    return " ".join(command.arguments), command.environment


def test_a_replica_on_cpu_gets_the_flags_that_matter_there(tmp_path: Path) -> None:
    line, environment = arguments(tmp_path, context_length=4096, slots=4, queue=2)
    for flag in (
        "-m vllm.entrypoints.openai.api_server",
        "--model /weights --served-model-name m --host 127.0.0.1 --port 7000",
        "--max-num-seqs 4 --max-num-queued-reqs 6",
        "--max-model-len 4096",
        "--enforce-eager --block-size 32",
        f"--dtype {cpu_dtype()}",
        "--scheduling-policy priority",
        "--enable-auto-tool-choice --tool-call-parser hermes",
    ):
        assert flag in line
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert environment["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("flags", "dtype"), [("fpu avx2 avx512_bf16", "bfloat16"), ("fpu avx2 avx512f", "float32"), (None, "float32")]
)
def test_a_processor_that_cannot_multiply_bfloat16_gets_float32(tmp_path: Path, flags: str | None, dtype: str) -> None:
    info = tmp_path / "cpuinfo"
    if flags is not None:
        info.write_text(f"processor : 0\nflags : {flags}\n")
    assert cpu_dtype(info) == dtype


def test_the_manifest_wins_and_a_gpu_gets_no_cpu_flags(tmp_path: Path) -> None:
    line, environment = arguments(
        tmp_path,
        device="gpu",
        args={"max-num-seqs": 99, "tool-call-parser": "mistral", "enable-prefix-caching": False},
        env={"HF_HUB_OFFLINE": "0"},
    )
    assert "--enforce-eager" not in line
    assert "--dtype auto" in line
    assert "--max-num-seqs 99" in line
    assert "--tool-call-parser mistral" in line
    assert "--no-enable-prefix-caching" in line
    assert environment == {**environment, "HF_HUB_OFFLINE": "0"}
    assert "VLLM_CPU_KVCACHE_SPACE" not in environment


def test_a_replica_gets_none_of_our_secrets(tmp_path: Path) -> None:
    _, environment = arguments(
        tmp_path, {"PATH": "/bin", "DATABASE_URL": "x", "REDIS_URL": "x", "PARLEY_SECRET_KEY": "x"}
    )
    assert set(environment) & {"PATH", "DATABASE_URL", "REDIS_URL", "PARLEY_SECRET_KEY"} == {"PATH"}


def test_remote_replicas_of_the_manifest_and_of_the_environment(tmp_path: Path) -> None:
    replicas = [{"url": "http://a:1", "slots": 7, "region": "eu", "capabilities": ["priority"]}]
    models = parse_manifest(model(weights=None, replicas=replicas)).models
    first, second = remote_records(models, "m=http://b:2?slots=3")
    assert (first.replica.url, first.replica.slots, first.replica.region) == ("http://a:1", 7, "eu")
    assert (second.replica.url, second.replica.slots, second.card) == ("http://b:2?slots=3", 3, models[0].card)


def test_given_urls_keep_the_packaged_model_out(tmp_path: Path) -> None:
    assert [m.id for m in models_to_run(settings(tmp_path))] == ["smollm2-135m"]
    assert models_to_run(settings(tmp_path, PARLEY_REPLICA_URLS="m=http://a:1")) == ()
    own = tmp_path / "own.yaml"
    own.write_text(DEFAULT_MANIFEST.read_text())
    with_both = settings(tmp_path, PARLEY_REPLICA_URLS="m=http://a:1", PARLEY_MANIFEST=str(own))
    assert len(models_to_run(with_both)) == 1


def test_a_model_that_pools_is_started_as_one(tmp_path: Path) -> None:
    line, _ = arguments(tmp_path, purpose="embeddings", args={"convert": "embed"})
    assert "--runner pooling" in line
    assert "--convert embed" in line
    for flag in ("max-num-queued-reqs", "scheduling-policy", "prefix-caching", "scale-out"):
        assert flag not in line


def test_a_replica_elsewhere_may_pool(tmp_path: Path) -> None:
    raw = model(weights=None, purpose="rerank", replicas=[{"url": "http://h:1"}])
    records = remote_records(parse_manifest(raw).models, "e=http://h:2/v1?purpose=embeddings,c=http://h:3,m=http://h:4")
    assert [(r.card.id, r.card.purpose) for r in records] == [
        ("m", Purpose.RERANK),
        ("e", Purpose.EMBEDDINGS),
        ("c", Purpose.CHAT),
        ("m", Purpose.RERANK),
    ]
    with pytest.raises(ValueError, match="'vision' is none of chat, embeddings, rerank"):
        remote_records((), "e=http://h:2?purpose=vision")
    (record,) = remote_records((), "e=http://h:2?cannot=tools")
    assert record.card.cannot == ("tools",)
    with pytest.raises(ValueError, match="smell is none of structured, tools"):
        remote_records((), "e=http://h:2?cannot=smell")


def test_a_server_for_vectors_does_not_stand_in_for_the_packaged_model(tmp_path: Path) -> None:
    vectors = "e=http://h:1?purpose=embeddings"
    assert models_to_run(settings(tmp_path, PARLEY_REPLICA_URLS=vectors))
    assert models_to_run(settings(tmp_path, PARLEY_REPLICA_URLS=f"{vectors},c=http://h:2")) == ()
