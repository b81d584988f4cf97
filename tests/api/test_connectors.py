"""A folder that is kept in step with somebody's files: what is new, changed and gone, and nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.accounts.models import User
from apps.accounts.types import Actor
from apps.core.checkup import Level
from apps.core.errors import NotFound
from apps.files import checkup, services, tasks
from apps.files.access import access_file
from apps.files.connectors import (
    Connector,
    ConnectorError,
    Item,
    ItemChanged,
    LocalFolder,
    Outcome,
    folder,
    sync,
    syncing,
)
from apps.files.models import File, FileState, Sync, SyncItem
from apps.files.storage import storage
from tests.concurrency.together import together
from tests.factories.accounts import make_actor
from tests.factories.files import drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def actor(tmp_path: Path) -> Iterator[Actor]:
    with object_store(tmp_path / "objects"):
        yield make_actor()


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Path:
    made = tmp_path / "root" / "docs"
    made.mkdir(parents=True)
    settings.CONNECTOR_ROOTS = [str(tmp_path / "root")]
    return made


def reach(place: Path) -> LocalFolder:
    return LocalFolder(str(place), [str(place.parent)])


def round_of(actor: Actor, place: Path, **options: Any) -> Outcome:
    """One round, then be the workers until all can be read."""
    outcome = sync(actor, reach(place), **options)
    for file_id in File.objects.filter(state=FileState.PROCESSING).values_list("id", flat=True):
        drain(file_id)
    return outcome


def names(actor: Actor) -> dict[str, str]:
    """Content of the actor's files, by name."""
    files = File.objects.filter(owner_id=actor.user_id).exclude(state=FileState.DELETED)
    return {file.name: b"".join(storage().read(file.object_key)).decode() for file in files}


def write(path: Path, text: str, *, at: int = 1_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def counts(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.added, outcome.changed, outcome.removed, outcome.unchanged


def test_new_changed_and_gone(actor: Actor, place: Path) -> None:
    write(place / "a.txt", "aardvark")
    write(place / "below" / "b.md", "badger")
    assert counts(round_of(actor, place)) == (2, 0, 0, 0)
    assert names(actor) == {"a.txt": "aardvark", "b.md": "badger"}
    assert set(File.objects.values_list("state", flat=True)) == {"ready"}
    assert counts(round_of(actor, place)) == (0, 0, 0, 2)

    write(place / "a.txt", "antelope", at=2_000)
    old = File.objects.get(name="a.txt").id
    outcome = sync(actor, reach(place))
    assert counts(outcome) == (0, 1, 0, 1)
    assert File.objects.get(id=old).state == "ready", "answers until the new one can be read"
    (new,) = File.objects.filter(state=FileState.PROCESSING).values_list("id", flat=True)
    assert counts(sync(actor, reach(place))) == (0, 0, 0, 2), "is being read"
    assert File.objects.get(id=old).state == "ready"
    drain(new)
    round_of(actor, place)
    assert File.objects.get(id=old).state == "deleted"
    assert names(actor) == {"a.txt": "antelope", "b.md": "badger"}

    (place / "below" / "b.md").unlink()
    assert counts(round_of(actor, place)) == (0, 0, 1, 1)
    assert names(actor) == {"a.txt": "antelope"}
    assert SyncItem.objects.count() == 1


def test_a_version_that_cannot_be_read_does_not_replace_one_that_can(actor: Actor, place: Path) -> None:
    write(place / "a.txt", "aardvark")
    round_of(actor, place)
    write(place / "a.txt", " ", at=2_000)
    round_of(actor, place)
    round_of(actor, place)
    assert sorted(File.objects.values_list("state", flat=True)) == ["failed", "ready"]
    write(place / "a.txt", "antelope", at=3_000)
    round_of(actor, place)
    round_of(actor, place)
    assert names(actor) == {"a.txt": "antelope"}


def test_what_its_owner_deleted_stays_deleted_until_it_changes(actor: Actor, place: Path) -> None:
    write(place / "a.txt", "aardvark")
    round_of(actor, place)
    round_of(actor, place)
    services.delete_file(actor, File.objects.get().id)
    round_of(actor, place)
    assert names(actor) == {}
    write(place / "a.txt", "antelope", at=2_000)
    round_of(actor, place)
    assert names(actor) == {"a.txt": "antelope"}


def test_nothing_is_reached_by_links(actor: Actor, place: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere" / "secret.txt", "secret")
    (place / "link.txt").symlink_to(secret)
    (place / "folder").symlink_to(secret.parent)
    (place / "up.txt").symlink_to("../../elsewhere/secret.txt")
    os.mkfifo(place / "pipe.txt")
    write(place / ".hidden.txt", "hidden")
    write(place / ".git" / "config.txt", "hidden")
    write(place / "plain.txt", "plain")
    outcome = round_of(actor, place)
    assert names(actor) == {"plain.txt": "plain"}
    assert outcome.skipped >= 3


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_put_there_after_the_listing_is_not_followed(
    actor: Actor, place: Path, tmp_path: Path, swapped: str
) -> None:
    secret = write(tmp_path / "elsewhere" / "a.txt", "secret")
    path = write(place / "below" / "a.txt", "public")
    connector = reach(place)
    (item,) = connector.list("").items
    path.unlink()
    if swapped == "file":
        path.symlink_to(secret)
    else:
        path.parent.rmdir()
        path.parent.symlink_to(secret.parent)
    with pytest.raises(ConnectorError):
        connector.read(item, at_most=100)


@pytest.mark.parametrize("wanted", ["/etc", "root/../elsewhere", "relative", "rootless"])
def test_only_folders_below_the_roots(place: Path, tmp_path: Path, wanted: str) -> None:
    named = wanted if wanted in ("/etc", "relative") else str(tmp_path / wanted)
    with pytest.raises(ConnectorError, match="PARLEY_CONNECTOR_ROOTS"):
        LocalFolder(named, [str(tmp_path / "root")])
    with pytest.raises(ConnectorError):
        LocalFolder(str(place), [])


def test_a_folder_that_is_a_link_is_refused(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a.txt", "secret")
    (place / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConnectorError):
        LocalFolder(str(place / "linked"), [str(tmp_path / "root")]).list("")


class Meddling:
    """A folder in which somebody writes while it is read."""

    kind = "folder"

    def __init__(self, place: Path, meddle: Callable[[], object]) -> None:
        self._inner, self.location, self._meddle = reach(place), str(place), meddle

    def list(self, cursor: str) -> Any:
        return self._inner.list(cursor)

    def read(self, item: Item, *, at_most: int) -> bytes:
        self._meddle()
        return self._inner.read(item, at_most=at_most)


def test_a_file_that_changes_while_it_is_read_waits_for_the_next_round(actor: Actor, place: Path) -> None:
    path = write(place / "a.txt", "half")
    connector: Connector = Meddling(place, lambda: write(path, "half and half", at=2_000))
    assert sync(actor, connector).failed == 1
    assert not File.objects.exists()
    assert "has changed" in SyncItem.objects.get().error
    assert counts(round_of(actor, place)) == (1, 0, 0, 0)
    assert names(actor) == {"a.txt": "half and half"}


def test_a_file_that_grows_between_two_looks_at_it(place: Path) -> None:
    path = write(place / "a.txt", "x" * 10)
    connector = reach(place)
    (item,) = connector.list("").items
    write(path, "y" * 12, at=1_000)
    with pytest.raises(ItemChanged):
        connector.read(item, at_most=100)


@pytest.mark.parametrize("dies", ["before the content", "before the row", "after the row"])
def test_a_round_that_is_killed_is_gone_on_with(
    actor: Actor, place: Path, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    write(place / "a.txt", "aardvark")
    write(place / "b.txt", "badger")

    class Killed(BaseException):
        pass

    def die(*args: Any, **options: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        if dies == "before the content":
            patch.setattr(type(storage()), "put", die)
        elif dies == "before the row":
            patch.setattr(services, "arm", die)
        else:
            patch.setattr(Outcome, "__setattr__", _dying(Killed))
        with pytest.raises(Killed):
            sync(actor, reach(place))
    round_of(actor, place)
    assert names(actor) == {"a.txt": "aardvark", "b.txt": "badger"}
    assert File.objects.count() == 2, "none twice"
    assert len(list(storage().everything())) == 2, "and nothing of what was begun is left"


def _dying(error: type[BaseException]) -> Callable[[Outcome, str, Any], None]:
    def set_or_die(outcome: Outcome, name: str, value: Any) -> None:
        if name == "added" and value:
            raise error
        object.__setattr__(outcome, name, value)

    return set_or_die


def test_rounds_at_once_are_one(actor: Actor, place: Path) -> None:
    for number in range(20):
        write(place / f"{number}.txt", f"number {number}")
    outcomes = together([partial(sync, actor, reach(place)) for _ in range(4)])
    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    assert sum(outcome.added for outcome in outcomes) == 20
    assert File.objects.count() == SyncItem.objects.count() == 20


def test_hundreds_of_files_take_some_rounds_and_each_comes_once(actor: Actor, place: Path) -> None:
    for number in range(450):
        write(place / f"{number % 10}" / f"{number}.txt", f"number {number}")
    rounds = [sync(actor, reach(place)) for _ in range(4)]
    assert [outcome.added for outcome in rounds] == [200, 200, 50, 0]
    assert [outcome.waiting for outcome in rounds] == [250, 50, 0, 0]
    assert File.objects.count() == 450


def test_what_is_too_much_is_refused_and_removes_nothing(
    actor: Actor, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "a.txt", "aardvark")
    round_of(actor, place)
    write(place / "b.txt", "badger")
    monkeypatch.setattr(folder, "MAX_ITEMS", 1)
    with pytest.raises(ConnectorError, match="more than 1 files"):
        sync(actor, reach(place))
    assert names(actor) == {"a.txt": "aardvark"}
    assert "more than 1 files" in Sync.objects.get().error


def test_a_folder_that_is_empty_all_at_once_removes_nothing(actor: Actor, place: Path) -> None:
    path = write(place / "a.txt", "aardvark")
    round_of(actor, place)
    path.unlink()
    with pytest.raises(ConnectorError, match="mounted"):
        sync(actor, reach(place))
    place.rmdir()
    with pytest.raises(ConnectorError):
        sync(actor, reach(place), allow_empty=True)
    assert names(actor) == {"a.txt": "aardvark"}
    place.mkdir()
    assert sync(actor, reach(place), allow_empty=True).removed == 1
    assert names(actor) == {}


def test_limits_hold_and_what_they_kept_out_comes_when_there_is_room(actor: Actor, place: Path) -> None:
    User.objects.filter(pk=actor.user_id).update(files_at_most=1)
    write(place / "a.txt", "aardvark")
    write(place / "b.txt", "badger")
    assert round_of(actor, place).failed == 1
    assert "1 of 1 allowed" in SyncItem.objects.get(external_id="b.txt").error
    User.objects.filter(pk=actor.user_id).update(files_at_most=2)
    assert round_of(actor, place).added == 1
    assert len(names(actor)) == 2


def test_files_are_their_owners_alone(actor: Actor, place: Path) -> None:
    write(place / "a.txt", "aardvark")
    round_of(actor, place)
    with pytest.raises(NotFound):
        access_file(make_actor(), File.objects.get().id)


def test_the_command_and_the_schedule(actor: Actor, place: Path, tmp_path: Path) -> None:
    email = User.objects.get(pk=actor.user_id).email
    write(place / "a.txt", "aardvark")
    out = StringIO()
    call_command("sync_folder", "--folder", str(place), "--owner", email.upper(), stdout=out)
    assert out.getvalue().startswith("1 added, 0 changed")
    write(place / "b.txt", "badger")
    tasks.sync()
    assert len(names(actor)) == 1, "not so soon"
    Sync.objects.update(synced_at=None)
    tasks.sync()
    assert len(names(actor)) == 2
    with pytest.raises(CommandError, match="PARLEY_CONNECTOR_ROOTS"):
        call_command("sync_folder", "--folder", str(tmp_path), "--owner", email)
    with pytest.raises(CommandError, match="no active account"):
        call_command("sync_folder", "--folder", str(place), "--owner", "nobody@example.org")
    call_command("sync_folder", "--folder", str(place), "--owner", email, "--forget", stdout=out)
    assert not Sync.objects.exists()
    assert len(names(actor)) == 2


def test_a_place_that_is_away_is_told_and_others_go_on(actor: Actor, place: Path) -> None:
    other = write(place.parent / "other" / "b.txt", "badger").parent
    write(place / "a.txt", "aardvark")
    for folder_of in (place, other):
        sync(actor, reach(folder_of))
    (place / "a.txt").unlink()
    place.rmdir()
    write(other / "c.txt", "cat")
    Sync.objects.update(synced_at=None)
    assert syncing.sync_due() == 2
    told = [finding for finding in checkup.check() if finding.name == "synced folder"]
    assert [finding.level for finding in told] == [Level.WARN]
    assert str(place) in told[0].found
    assert set(names(actor)) == {"a.txt", "b.txt", "c.txt"}


def test_an_id_that_never_came_to_be_leaves_nothing(actor: Actor) -> None:
    file_id = UUID(int=7)
    storage().put(f"{actor.organization_id}/{file_id}/original", b"x", content_type="")
    services.drop_unborn(actor, file_id)
    assert list(storage().everything()) == []
