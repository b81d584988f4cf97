"""The process environment, read once and typed.

The only reader of `os.environ` in the Django apps. Local defaults come from `secrets.json` and `connections.env`
in the state folder, which the local supervisor writes; servers set the variables themselves.
"""

from __future__ import annotations

import json
import os
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from inference.admission import DEFAULT_BUDGETS

REPOSITORY = Path(__file__).resolve().parents[2]


def _var(name: str) -> AliasChoices:
    return AliasChoices(name, name.lower())


class Env(BaseSettings):
    """Every variable the apps read. An unset secret falls back to the generated one, never to a constant."""

    # What is set to nothing is not set: Compose can only pass a variable on, not leave it out.
    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True)

    state_dir: Path = Field(REPOSITORY / ".parley", validation_alias=_var("PARLEY_STATE_DIR"))
    database_url: str = Field("", validation_alias=_var("DATABASE_URL"))
    redis_url: str = Field("", validation_alias=_var("REDIS_URL"))
    secret_key: str = Field("", validation_alias=_var("PARLEY_SECRET_KEY"))
    cache_salt_secret: str = Field("", validation_alias=_var("PARLEY_CACHE_SALT_SECRET"))
    public_url: str = Field("", validation_alias=_var("PARLEY_PUBLIC_URL"))
    port: int = Field(8000, validation_alias=_var("PORT"))
    signup: Literal["first", "open"] = Field("first", validation_alias=_var("PARLEY_SIGNUP"))
    email_url: str = Field("", validation_alias=_var("PARLEY_EMAIL_URL"))
    email_from: str = Field("", validation_alias=_var("PARLEY_EMAIL_FROM"))
    trusted_proxies: int = Field(0, ge=0, le=10, validation_alias=_var("PARLEY_TRUSTED_PROXIES"))
    bootstrap_password: str = Field("", validation_alias=_var("PARLEY_BOOTSTRAP_PASSWORD"))
    replica_urls: str = Field("", validation_alias=_var("PARLEY_REPLICA_URLS"))
    budgets: Path = Field(DEFAULT_BUDGETS, validation_alias=_var("PARLEY_BUDGETS"))
    runs_per_minute: int = Field(60, ge=1, le=1_000_000, validation_alias=_var("PARLEY_RUNS_PER_MINUTE"))
    # Pooling models of the registry, by id: for vectors (in process without one) and for reranking (none without).
    embedding_model: str = Field("", max_length=56, validation_alias=_var("PARLEY_EMBEDDING_MODEL"))
    rerank_model: str = Field("", validation_alias=_var("PARLEY_RERANK_MODEL"))
    s3_endpoint: str = Field("", validation_alias=_var("S3_ENDPOINT"))
    s3_public_endpoint: str = Field("", validation_alias=_var("S3_PUBLIC_ENDPOINT"))
    s3_bucket: str = Field("parley", validation_alias=_var("S3_BUCKET"))
    s3_access_key: str = Field("", validation_alias=_var("S3_ACCESS_KEY"))
    s3_secret_key: str = Field("", validation_alias=_var("S3_SECRET_KEY"))
    s3_region: str = Field("us-east-1", validation_alias=_var("S3_REGION"))
    file_lease_s: float = Field(30.0, ge=1, le=300, validation_alias=_var("PARLEY_FILE_LEASE_S"))
    files_mib_per_user: int = Field(10_240, ge=1, validation_alias=_var("PARLEY_FILES_MIB_PER_USER"))
    # Folders, separated by colons, below which `manage.py sync_folder` may be pointed; none without it.
    connector_roots: str = Field("", validation_alias=_var("PARLEY_CONNECTOR_ROOTS"))
    clamd_socket: str = Field("/run/clamav/clamd.ctl", validation_alias=_var("CLAMD_SOCKET"))
    allowed_hosts: str = Field("", validation_alias=_var("PARLEY_ALLOWED_HOSTS"))
    log_format: Literal["console", "json"] = Field("console", validation_alias=_var("PARLEY_LOG_FORMAT"))
    metrics_token: str = Field("", validation_alias=_var("PARLEY_METRICS_TOKEN"))
    # The runner's own exporter, on loopback unless told otherwise; 0 for none.
    runner_metrics_port: int = Field(0, ge=0, le=65_535, validation_alias=_var("PARLEY_RUNNER_METRICS_PORT"))
    runner_metrics_host: str = Field("127.0.0.1", validation_alias=_var("PARLEY_RUNNER_METRICS_HOST"))
    web_threads: int = Field(12, ge=2, le=200, validation_alias=_var("PARLEY_WEB_THREADS"))

    @cached_property
    def _generated(self) -> dict[str, str]:
        path = self.state_dir / "secrets.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def secret(self, name: Literal["secret_key", "cache_salt_secret"]) -> str:
        """The secret from the environment or the generated file; at least 32 characters.

        Raises RuntimeError when neither is there, so that no default secret can ever be in use.
        """
        value: str = getattr(self, name) or self._generated.get(name, "")
        if len(value) < 32:
            raise RuntimeError(
                f"PARLEY_{name.upper()} is missing or shorter than 32 characters. "
                "`make up` generates one; on a server set it in the environment."
            )
        return value

    @property
    def base_url(self) -> str:
        return (self.public_url or f"http://127.0.0.1:{self.port}").rstrip("/")

    @property
    def hosts(self) -> list[str]:
        named = [host.strip() for host in self.allowed_hosts.split(",") if host.strip()]
        return [*named, urlsplit(self.base_url).hostname or "127.0.0.1", "127.0.0.1", "localhost"]


@lru_cache(maxsize=1)
def env() -> Env:
    state = Path(os.environ.get("PARLEY_STATE_DIR") or REPOSITORY / ".parley")
    # Lets `manage.py` find the running stack from any shell; what the environment says wins.
    return Env(_env_file=state / "connections.env")
