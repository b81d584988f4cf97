"""What every pooling replica must do alike: the scripted server, and a live vLLM under the real supervisor."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator

import pytest

from inference.engines.pooling import Vector, embed, rerank
from inference.registry import read_models
from tests.contracts.engine_subjects import LiveSupervisor, engine_python
from tests.contracts.pooling_subjects import POOLING_MODEL, PoolingSubject, live, scripted, write_manifest
from tests.services import Services

TEXTS = ["The zebra lives on the plains of Africa.", "Penguins feed on fish.", "Heating the zoo became dear."]
WITHIN_S = 60
# The first test that wants the live engine also waits for its start.
LIVE = pytest.param("live", marks=[pytest.mark.vllm, pytest.mark.timeout(1800)])


@pytest.fixture(scope="module")
def supervisor(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSupervisor]:
    if not engine_python().exists():
        pytest.skip("the inference engine is not installed (make up installs it)")
    assert services.valkey.answers()
    folder = tmp_path_factory.mktemp("pooling")
    address = services.environment()["REDIS_URL"]
    supervisor = LiveSupervisor(address, folder, manifest=write_manifest(folder), model=POOLING_MODEL)
    yield supervisor
    supervisor.stop()
    assert supervisor.engine_pids() == []


@pytest.fixture(params=["scripted", LIVE])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[PoolingSubject]:
    context = live(request.getfixturevalue("supervisor")) if request.param == "live" else scripted()
    async with context as subject:
        yield subject


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_each_text_has_a_vector_of_length_one_in_its_place(subject: PoolingSubject) -> None:
    together = await embed(subject.engine, TEXTS, within_s=WITHIN_S)
    assert [len(vector) for vector in together] == [subject.dimensions] * len(TEXTS)
    assert all(math.isclose(math.hypot(*vector), 1.0, rel_tol=1e-6) for vector in together)
    for text, vector in zip(TEXTS, together, strict=True):
        (alone,) = await embed(subject.engine, [text], within_s=WITHIN_S)
        assert cosine(alone, vector) > 1 - subject.noise
    assert cosine(together[0], together[1]) < 1 - subject.noise


async def test_a_text_that_is_too_long_is_cut(subject: PoolingSubject) -> None:
    (vector,) = await embed(subject.engine, ["the zebra sleeps " * 2_000], within_s=WITHIN_S)
    assert len(vector) == subject.dimensions


async def test_passages_are_scored_in_their_order(subject: PoolingSubject) -> None:
    for n, text in enumerate(TEXTS):
        scores = await rerank(subject.engine, text, TEXTS, within_s=WITHIN_S)
        assert len(scores) == len(TEXTS)
        assert max(range(len(TEXTS)), key=scores.__getitem__) == n


@pytest.mark.vllm
@pytest.mark.timeout(1800)
def test_the_live_embedder_is_no_model_for_people(supervisor: LiveSupervisor) -> None:
    assert supervisor.until_ready().replica.version
    assert POOLING_MODEL not in {model.id for model in read_models(supervisor.redis)}
