"""Setting a checkout up: stamps, advice on failures, secrets, ports, which engine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from infra.local import bootstrap, cli, engine, pieces, ports, registries, secret_store, tasks
from infra.local.layout import Layout
from infra.local.steps import StepFailed, Steps, digest_of, explain
from infra.local.tasks import Section, run_sections


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "checkout", tmp_path / "checkout" / ".parley")
    made.repository.mkdir()
    made.prepare()
    return made


# Steps


def test_a_step_is_current_until_one_of_its_inputs_changes(layout: Layout, tmp_path: Path) -> None:
    source, steps = tmp_path / "uv.lock", Steps(layout)
    source.write_text("one")
    steps.mark("python", digest_of([source]))
    assert steps.is_current("python", digest_of([source]))
    source.write_text("two")
    assert not steps.is_current("python", digest_of([source]))
    source.unlink()
    assert not steps.is_current("python", digest_of([source]))


def test_a_failed_step_shows_the_end_of_its_output_and_where_the_rest_is(layout: Layout) -> None:
    with pytest.raises(StepFailed) as failure:
        Steps(layout).run("a step", [["/bin/sh", "-c", "echo early; echo 'No space left on device' >&2; exit 3"]])
    text = str(failure.value)
    assert "exit code 3" in text
    assert "The disk is full" in text
    assert str(layout.logs / "setup.log") in text
    assert "early" in (layout.logs / "setup.log").read_text()


def test_a_program_that_does_not_exist_is_a_failed_step(layout: Layout) -> None:
    with pytest.raises(StepFailed, match="no-such-program"):
        Steps(layout).run("a step", [["no-such-program"]])


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("npm ERR! code ENOTFOUND", "registry could not be reached"),
        ("error: Hash mismatch for torch", "not the one that was locked"),
        ("Permission denied: '.venv'", "another user"),
    ],
)
def test_well_known_failures_come_with_advice(output: str, advice: str) -> None:
    assert advice in explain("a step", 1, [output], Path("setup.log"))


# Secrets


def test_secrets_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first = secret_store.load(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret_store.load(path) == first
    assert len(set(json.loads(path.read_text()).values())) == 5


def test_secrets_that_others_can_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    secret_store.load(path)
    path.chmod(0o640)
    with pytest.raises(secret_store.BadSecret, match="chmod 600"):
        secret_store.load(path)


@pytest.mark.parametrize(
    "value", ["changeme", "x" * 64, "secret" * 10, "password-password-password-password", "short1234"]
)
def test_short_and_well_known_secrets_are_refused(value: str) -> None:
    with pytest.raises(secret_store.BadSecret, match="token_urlsafe"):
        secret_store.check("PARLEY_SECRET_KEY", value)


def test_a_secret_from_the_environment_wins_and_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = "b0Yk2QmX7w-Zr5TgHnPqLsVc9dJe3fUa1iOo8KxW"
    monkeypatch.setenv("PARLEY_SECRET_KEY", given)
    path = tmp_path / "secrets.json"
    assert secret_store.load(path).secret_key == given
    assert given not in path.read_text()
    monkeypatch.setenv("PARLEY_SECRET_KEY", "django-insecure-change-me")
    with pytest.raises(secret_store.BadSecret):
        secret_store.load(path)


# Ports


def test_a_port_is_remembered_until_somebody_takes_it(tmp_path: Path) -> None:
    first = ports.PortBook(tmp_path / "ports.json").port("postgres")
    assert ports.PortBook(tmp_path / "ports.json").port("postgres") == first
    with socket.create_server(("127.0.0.1", first)):
        assert ports.PortBook(tmp_path / "ports.json").port("postgres") != first


@pytest.mark.parametrize("text", ["abc", "0", "70000", "-1", "80 "])
def test_a_port_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", text)
    with pytest.raises(pieces.BadSetting, match="between 1 and 65535"):
        pieces.chosen_port()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who holds a port")
def test_who_holds_a_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert f"process {os.getpid()}" in ports.holder(server.getsockname()[1])


# Packages


def test_uv_gets_the_find_links_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels https://example.org/wheels")
    assert registries.uv_environment()["UV_FIND_LINKS"] == "/wheels,https://example.org/wheels"
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    assert "UV_FIND_LINKS" not in registries.uv_environment()


def test_a_cpu_wheel_in_find_links_is_preferred_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    assert "--torch-backend" in engine.cpu_torch({"UV_FIND_LINKS": str(tmp_path)})
    (tmp_path / f"torch-{engine.TORCH}+cpu-cp311-cp311-linux_x86_64.whl").touch()
    assert engine.cpu_torch({"UV_FIND_LINKS": str(tmp_path)}) == [f"torch=={engine.TORCH}+cpu"]


def test_the_engine_fits_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PARLEY_VLLM", "PARLEY_REPLICA_URLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine.kind_for_this_machine() == "cpu"
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\n")
    tool.chmod(0o755)
    assert engine.kind_for_this_machine() == "gpu"
    tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate'; exit 9\n")
    assert engine.kind_for_this_machine() == "cpu"
    monkeypatch.setenv("PARLEY_REPLICA_URLS", "m=http://127.0.0.1:1")
    assert engine.kind_for_this_machine() == "none"
    monkeypatch.setenv("PARLEY_VLLM", "tpu")
    with pytest.raises(StepFailed, match="cpu, gpu or none"):
        engine.kind_for_this_machine()


def test_node_packages_are_compared_with_the_lock_not_with_a_date(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    locked = {"": {}, "node_modules/a": {"integrity": "1"}, "node_modules/mac": {"integrity": "2", "optional": True}}
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": locked}))
    assert not bootstrap.node_packages_match(tmp_path)
    there = tmp_path / "node_modules" / ".package-lock.json"
    there.write_text(json.dumps({"packages": {"node_modules/a": {"integrity": "1"}}}))
    assert bootstrap.node_packages_match(tmp_path)
    there.write_text(json.dumps({"packages": {"node_modules/a": {"integrity": "other"}}}))
    assert not bootstrap.node_packages_match(tmp_path)


def test_a_missing_or_old_node_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepFailed, match=r"Node\.js 20\.19"):
        bootstrap.need_node()
    for name, version in (("node", "v18.4.0"), ("npm", "9.0.0")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(StepFailed, match=r"is 18\.4\.0"):
        bootstrap.need_node()


def test_a_full_disk_is_noticed_before_anything_is_fetched(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bootstrap.DISK_NEEDED, "python", 1 << 60)
    with pytest.raises(StepFailed, match="Free some space"):
        bootstrap.need_disk(layout, "python")


# Sections of a task


def test_a_section_that_does_not_end_is_stopped_and_fails_the_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging = Section("hangs", ["sleep", "60"], tmp_path, limit_s=0.2)
    fine = Section("is fine", ["true"], tmp_path)
    assert run_sections([hanging, fine]) == 1
    printed = capsys.readouterr().out
    assert "hangs: not done after" in printed
    assert "FAIL" in printed
    assert "ok" in printed


# The command line


@pytest.mark.parametrize("options", [["-k", "name"], ["-x", "tests/unit"], ["files", "--list"], ["--help"], []])
def test_a_command_passes_all_its_arguments_on(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    passed: list[tuple[str, list[str]]] = []

    def note(_: Layout, command: str, rest: Sequence[str]) -> int:
        passed.append((command, list(rest)))
        return 0

    monkeypatch.setattr(tasks, "run", note)
    assert cli.main(["test", *options]) == 0
    assert passed == [("test", options)]
