"""Runs the replicas of this machine and tells everyone what there is.

    python -m inference.supervisor

Responsible for: the manifest's replicas (started, watched, restarted, drained), remote ones (checked), and the
registry's heartbeat. Environment: see `settings`. Leaves a single replica's life to `replica_process`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from dataclasses import replace

from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference.child import kill_leftovers
from inference.durations import Durations
from inference.engines.factory import make_engine
from inference.manifest import ManifestError, ModelSpec, RemoteReplica, load_manifest
from inference.prober import StaticReplicas, parse_replica_urls, static_record
from inference.protocol import Purpose
from inference.registry import HEARTBEAT_S, Record, fetch_records, forget_records, publish_records, publish_rules
from inference.replica_process import LocalReplica
from inference.routing.types import Rule
from inference.settings import Settings, read_settings

log = logging.getLogger("inference")

DRAIN_S = 20.0
_PUBLISH_S = 2.0


class Supervisor:
    def __init__(self, models: tuple[ModelSpec, ...], settings: Settings, rules: tuple[Rule, ...] = ()) -> None:
        self._settings, self._rules = settings, rules
        self._owner = f"{socket.gethostname()}:{settings.state_dir}"
        self._redis = Redis.from_url(settings.redis_url, socket_timeout=5, socket_connect_timeout=3)
        durations = Durations(settings.run_dir / "durations.json")
        self._locals = [
            LocalReplica(spec, number, settings, durations, on_change=self._changed)
            for spec in models
            for number in range(1, spec.local_replicas + 1)
        ]
        self._remotes = StaticReplicas((), make_engine, records=remote_records(models, settings.replica_urls))
        self._wake = asyncio.Event()
        self._dirty: set[str] = set()
        self._connected = True

    def _changed(self, replica: LocalReplica) -> None:
        self._dirty.add(replica.spec.id)
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then answers in progress end first, and no process of ours is left."""
        if killed := kill_leftovers(str(self._settings.state_dir)):
            log.warning("ended %d processes that an earlier supervisor had left", killed)
        await self._forget_others()
        lives = [asyncio.create_task(r.run(), name=r.info.id) for r in self._locals]
        chores = [asyncio.create_task(self._publish_always()), asyncio.create_task(self._probe_always())]
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({stopped, *lives, *chores}, return_when=asyncio.FIRST_COMPLETED)
        await self._shut_down(lives, chores)
        for task in done - {stopped}:
            task.result()

    async def _shut_down(self, lives: list[asyncio.Task[None]], chores: list[asyncio.Task[None]]) -> None:
        log.info("stopping")
        await asyncio.gather(*(r.drain(DRAIN_S) for r in self._locals))
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        left = set(chores)
        while left:
            # Once is not enough: before Python 3.12 `asyncio.wait_for`, in the Valkey client, can lose a cancellation.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.2)
        for replica in self._locals:
            replica.mark_gone()
        await self._publish()
        await self._remotes.close()
        await self._redis.aclose()

    # ------------------------------------------------ the registry

    def _records(self) -> list[Record]:
        remotes = (replace(r, owner=self._owner) for r in self._remotes.records())
        return [*(r.record(self._owner) for r in self._locals), *remotes]

    async def _publish_always(self) -> None:
        """Every heartbeat, and at once when a state changed."""
        while True:
            await self._publish()
            try:
                async with asyncio.timeout(_PUBLISH_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _publish(self) -> None:
        self._wake.clear()
        dirty, self._dirty = self._dirty, set()
        try:
            await publish_records(self._redis, self._records(), changed=dirty)
            await publish_rules(self._redis, self._owner, self._rules)
        except (RedisError, OSError) as error:
            self._dirty |= dirty
            if self._connected:
                log.warning("the registry cannot be written: %s", error)
            self._connected = False
        else:
            self._connected = True

    async def _forget_others(self) -> None:
        """Records that we wrote in an earlier life, of replicas that the manifest no longer has."""
        mine = {r.replica.id for r in self._records()}
        try:
            old = [r.replica.id for r in await fetch_records(self._redis) if r.owner == self._owner]
            await forget_records(self._redis, [i for i in old if i not in mine])
        except (RedisError, OSError) as error:
            log.warning("the registry cannot be read: %s", error)

    async def _probe_always(self) -> None:
        """Remote replicas; a change of one is told like a change of ours."""
        while True:
            before = {r.replica.id: r.replica.state for r in self._remotes.records()}
            await self._remotes.probe()
            changed = {r.card.id for r in self._remotes.records() if before[r.replica.id] is not r.replica.state}
            if changed:
                self._dirty |= changed
                self._wake.set()
            await asyncio.sleep(HEARTBEAT_S)


def remote_records(models: tuple[ModelSpec, ...], replica_urls: str) -> tuple[Record, ...]:
    """What the manifest and PARLEY_REPLICA_URLS say of replicas elsewhere. A model named in both is one model."""
    cards = {m.id: m.card for m in models}
    records = [_remote_record(spec, remote) for spec in models for remote in spec.remote_replicas]
    for model, url in parse_replica_urls(replica_urls):
        records.append(static_record(model, url, card=cards.get(model)))
    return tuple(records)


def _remote_record(spec: ModelSpec, remote: RemoteReplica) -> Record:
    record = static_record(spec.id, remote.url, card=spec.card)
    facts = replace(
        record.replica,
        kind=remote.kind or record.replica.kind,
        slots=remote.slots,
        served_model=remote.served_model,
        region=remote.region or record.replica.region,
        api_key_env=remote.api_key_env,
        capabilities=frozenset(remote.capabilities),
        context_length=spec.context_length or 0,
    )
    return replace(record, replica=facts)


def models_to_run(settings: Settings) -> tuple[ModelSpec, ...]:
    """The manifest's models. Where chat replicas are given by URL and no manifest of one's own, the packaged model
    stays out: the machine was not meant to run one. ManifestError."""
    given = (static_record(model, url).card for model, url in parse_replica_urls(settings.replica_urls))
    if settings.manifest_is_default and any(card.purpose is Purpose.CHAT for card in given):
        return ()
    return load_manifest(settings.manifest).models


async def _main(settings: Settings, models: tuple[ModelSpec, ...], rules: tuple[Rule, ...]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Supervisor(models, settings, rules).run(stop)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    settings = read_settings()
    if not settings.redis_url:
        sys.stderr.write("REDIS_URL is not set: the supervisor has nowhere to publish its replicas\n")
        return 2
    try:
        models = models_to_run(settings)
        rules = tuple(spec.rule for spec in load_manifest(settings.manifest).rules)
    except ManifestError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_main(settings, models, rules))
    return 0


if __name__ == "__main__":
    sys.exit(main())
