"""docker-compose.yml and the Dockerfiles: complete, hardened, and without a secret of their own.

`docker compose config` judges the file itself where the plugin is installed; the rest is checked everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.config.env import Env
from infra.local import system, tasks
from infra.local.layout import REPOSITORY, Layout

FILE = REPOSITORY / "docker-compose.yml"
SECRETS = {"POSTGRES_PASSWORD", "VALKEY_PASSWORD", "S3_SECRET_KEY", "PARLEY_SECRET_KEY", "PARLEY_CACHE_SALT_SECRET"}
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(:?[-?+][^}]*)?\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


@pytest.fixture(scope="module")
def pieces(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def test_every_piece_of_the_product_is_there(pieces: dict[str, dict[str, Any]]) -> None:
    assert set(pieces) == {
        *("postgres", "valkey", "s3", "migrate", "web", "runner", "worker", "ocr", "beat"),
        *("inference-cpu", "inference-gpu"),
    }
    queues = " ".join(" ".join(service.get("command", [])) for service in pieces.values())
    assert {name for name in ("ingest", "ocr", "embed", "default") if re.search(rf"\b{name}\b", queues)} == {
        *("ingest", "ocr", "embed", "default")
    }


def test_secrets_come_from_outside_and_have_no_defaults() -> None:
    named = {match.group(1): match.group(2) or "" for match in VARIABLE.finditer(FILE.read_text())}
    assert set(named) >= SECRETS
    for match in VARIABLE.finditer(FILE.read_text()):
        if match.group(1) in SECRETS:
            assert (match.group(2) or "").startswith(":?"), f"{match.group(0)} may be empty or has a default"
    assert not [name for name in named if re.search("KEY|SECRET|PASSWORD", name) and name not in SECRETS]


def test_the_made_environment_has_every_secret_and_is_never_overwritten(tmp_path: Path) -> None:
    layout = Layout(tmp_path, tmp_path / ".parley")
    assert tasks.env(layout, []) == 0
    text = (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    made = dict(line.split("=", 1) for line in text.splitlines())
    assert set(made) == SECRETS | {"COMPOSE_PROFILES"}
    assert len({made[name] for name in SECRETS}) == len(SECRETS)
    assert all(len(made[name]) >= 32 for name in SECRETS)
    tasks.env(layout, [])
    assert (tmp_path / ".env").read_text() == text


def test_nobody_is_root_and_nothing_gains_rights(pieces: dict[str, dict[str, Any]]) -> None:
    for name, service in pieces.items():
        assert service.get("user", "root").split(":")[0] not in ("root", "0"), name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service.get("read_only") or name == "postgres", name


def test_all_that_keep_running_say_whether_they_are_well(pieces: dict[str, dict[str, Any]]) -> None:
    for name, service in pieces.items():
        if name != "migrate":
            assert service["healthcheck"]["test"], name
            assert service["healthcheck"].get("start_period"), name
            assert service["restart"] == "unless-stopped", name


def test_reading_files_gives_way_to_answers(pieces: dict[str, dict[str, Any]]) -> None:
    """In the order of `nice` where the product runs without containers; what has no share has Docker's 1,024."""
    shares = {name: service.get("cpu_shares", 1_024) for name, service in pieces.items()}
    assert shares.pop("ocr") < shares.pop("worker") < min(shares.values())


def test_only_loopback_is_published_and_the_stores_are_closed_off(compose: dict[str, Any]) -> None:
    published = {name: s["ports"] for name, s in compose["services"].items() if "ports" in s}
    assert set(published) == {"web", "s3", "runner"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    assert compose["networks"]["stores"] == {"internal": True}
    for name in ("postgres", "valkey"):
        assert compose["services"][name]["networks"] == ["stores"]


def test_whoever_uses_a_store_waits_for_it(pieces: dict[str, dict[str, Any]]) -> None:
    assert set(pieces["migrate"]["depends_on"]) == {"postgres", "s3"}
    for name in ("web", "runner", "worker", "ocr", "beat"):
        assert pieces[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}, name
        assert pieces[name]["depends_on"]["valkey"] == {"condition": "service_healthy"}, name


def test_every_variable_is_one_that_the_apps_read(pieces: dict[str, dict[str, Any]]) -> None:
    """A misspelt variable would be ignored in silence."""
    known = set(re.findall(r'_var\("(\w+)"\)', (REPOSITORY / "apps/config/env.py").read_text()))
    engines = (REPOSITORY / "inference/engines/factory.py").read_text()
    known |= {"OMP_THREAD_LIMIT", *re.findall(r'_positive\(environment, "(\w+)"', engines)}
    for name in ("web", "runner", "worker", "ocr", "beat", "migrate"):
        assert set(pieces[name]["environment"]) <= known, name
    inference = set(re.findall(r'env(?:\.get\(|\[)"(\w+)"', (REPOSITORY / "inference/settings.py").read_text()))
    assert set(pieces["inference-cpu"]["environment"]) <= inference


# Variables of the apps that `.env` does not set, and why.
FIXED = {
    "DATABASE_URL": "the postgres of this file",
    "REDIS_URL": "the valkey of this file",
    "S3_ENDPOINT": "the s3 of this file",
    "S3_BUCKET": "ours alone",
    "S3_ACCESS_KEY": "the identity of this file",
}
LEFT_OUT = {
    "PARLEY_STATE_DIR": "the image sets it, to where the volume is",
    "PARLEY_BOOTSTRAP_PASSWORD": "given to one command, not to all processes",
    "S3_REGION": "the s3 of this file has none",
    "PARLEY_RUNNER_METRICS_HOST": "the runner's, fixed there",
    "PARLEY_RUNNER_METRICS_PORT": "the runner's, fixed there; outside it is where the port is published",
}


def test_every_setting_is_passed_on_or_left_out_for_a_reason(pieces: dict[str, dict[str, Any]]) -> None:
    read = set(re.findall(r'_var\("(\w+)"\)', (REPOSITORY / "apps/config/env.py").read_text()))
    for name in ("web", "runner", "worker", "ocr", "beat", "migrate"):
        given = pieces[name]["environment"]
        assert sorted(read - set(given) - set(LEFT_OUT)) == [], name
        settable = {key for key, value in given.items() if "${%s:" % key in value}  # noqa: UP031 - braces
        fixed = set(FIXED) | (set(LEFT_OUT) if name == "runner" else set()) | {"OMP_THREAD_LIMIT"}
        assert sorted(set(given) - settable - fixed) == [], f"{name} has a value of its own for what `.env` may set"
    assert read >= set(FIXED) | set(LEFT_OUT), "what is excused is read"


def test_defaults_are_not_said_again(pieces: dict[str, dict[str, Any]]) -> None:
    """An empty variable has the default of the code; only what differs in containers has one here."""
    own = {name for name, value in pieces["web"]["environment"].items() if re.search(r"\$\{\w+:-[^}]", value)}
    assert own == {"S3_PUBLIC_ENDPOINT", "PARLEY_PUBLIC_URL", "PORT", "PARLEY_LOG_FORMAT"}


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PARLEY_SIGNUP", "PARLEY_WEB_THREADS", "PARLEY_BUDGETS", "CLAMD_SOCKET", "PARLEY_TRUSTED_PROXIES"):
        monkeypatch.setenv(name, "")
    read, fields = Env(), Env.model_fields
    for name in ("signup", "web_threads", "budgets", "clamd_socket", "trusted_proxies"):
        assert getattr(read, name) == fields[name].default


def test_the_operators_files_are_mounted_where_the_variables_say(compose: dict[str, Any]) -> None:
    for config, variable, service in (
        ("budgets", "PARLEY_BUDGETS", "web"),
        ("budgets", "PARLEY_BUDGETS", "runner"),
        ("budgets", "PARLEY_BUDGETS", "worker"),
        ("manifest", "PARLEY_MANIFEST", "inference-cpu"),
    ):
        named, default = re.fullmatch(r"\$\{(\w+):-(.+)\}", compose["configs"][config]["file"]).groups()  # type: ignore[union-attr]
        assert (named, (REPOSITORY / default).exists()) == (variable, True)
        piece = compose["services"][service]
        mounted = {one["source"]: one["target"] for one in piece["configs"]}
        assert piece["environment"][variable] == "${%s:+%s}" % (variable, mounted[config])  # noqa: UP031 - braces


def test_the_runners_series_can_be_read_from_this_machine(pieces: dict[str, dict[str, Any]]) -> None:
    runner = pieces["runner"]
    port = runner["environment"]["PARLEY_RUNNER_METRICS_PORT"]
    (published,) = runner["ports"]
    assert published.startswith("127.0.0.1:")
    assert published.endswith(f":{port}")
    assert runner["environment"]["PARLEY_RUNNER_METRICS_HOST"] == "0.0.0.0"


def test_what_is_built_exists_and_ends_as_nobody_special(pieces: dict[str, dict[str, Any]]) -> None:
    for name, service in pieces.items():
        if "build" not in service:
            assert ":" in service["image"], name
            assert not service["image"].endswith(":latest"), name
            continue
        text = (REPOSITORY / service["build"]["dockerfile"]).read_text()
        target = service["build"].get("target")
        stages = re.split(r"(?m)^FROM ", text)[1:]
        stage = next(s for s in stages if s.splitlines()[0].endswith(f" AS {target}")) if target else stages[-1]
        assert re.search(r"(?m)^USER 10001:10001$", stage), f"{name} runs as root"


def test_the_images_copy_only_what_the_builder_is_sent() -> None:
    sent = {line[1:].strip("/") for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    for dockerfile in (REPOSITORY / "infra/docker").glob("*.Dockerfile"):
        for line in re.findall(r"(?m)^COPY (?!--from)(.+)$", dockerfile.read_text()):
            for source in line.split()[:-1]:
                assert (REPOSITORY / source).exists(), f"{dockerfile.name}: {source}"
                parents = {source.strip("/"), *(str(parent) for parent in Path(source).parents)}
                assert parents & sent, f"{dockerfile.name}: {source} is not sent"


def test_the_image_recognises_the_languages_that_tests_do() -> None:
    dockerfile = (REPOSITORY / "infra/docker/app.Dockerfile").read_text()
    (listed,) = re.findall(r"for l in ([a-z ]+); do echo tesseract-ocr-\$l", dockerfile)
    assert {"eng", *listed.split()} == set(system.LANGUAGES), "English comes with tesseract"


def compose_program() -> list[str] | None:
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return ["docker", "compose"]
    return None


@pytest.mark.skipif(compose_program() is None, reason="the compose plugin is not installed")
def test_compose_accepts_the_file_and_misses_the_secrets(tmp_path: Path) -> None:
    program = compose_program()
    assert program
    bare = {name: value for name, value in os.environ.items() if name not in SECRETS}
    config = [*program, "-f", str(FILE), "--profile", "cpu", "--profile", "gpu", "--env-file"]
    tasks.env(Layout(tmp_path, tmp_path), [])
    fine = subprocess.run(
        [*config, str(tmp_path / ".env"), "config", "-q"], env=bare, capture_output=True, text=True, check=False
    )
    assert fine.returncode == 0, fine.stderr
    lacking = subprocess.run(
        [*config, os.devnull, "config", "-q"], env=bare, capture_output=True, text=True, check=False
    )
    assert lacking.returncode != 0
    assert "run make env" in lacking.stderr
