"""Settings shared by every environment. Values that differ by machine come from `apps.config.env`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.urls import reverse_lazy

from apps.config.env import REPOSITORY, env
from apps.files.types import MAX_PAGES
from inference.admission import read_policy

_env = env()

VERSION = "0.1.0"
SECRET_KEY = _env.secret("secret_key")
WEB_THREADS = _env.web_threads
METRICS_TOKEN = _env.metrics_token
RUNNER_METRICS = (_env.runner_metrics_host, _env.runner_metrics_port)
CACHE_SALT_SECRET = _env.secret("cache_salt_secret")
DEBUG = False
ALLOWED_HOSTS = _env.hosts
PUBLIC_URL = _env.base_url
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL, f"http://localhost:{_env.port}", f"http://127.0.0.1:{_env.port}"]
REDIS_URL = _env.redis_url or "redis://127.0.0.1:6379/0"
STATE_DIR = _env.state_dir

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.headless",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "apps.core",
    "apps.accounts",
    "apps.files",
    "apps.conversations",
    "apps.api",
    "apps.operations",
]

MIDDLEWARE = [
    "apps.core.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.core.middleware.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "apps.config.urls"
ASGI_APPLICATION = "apps.config.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _database(url: str) -> dict[str, Any]:
    parts = urlsplit(url or "postgresql://parley@127.0.0.1:5432/parley")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts.hostname or "127.0.0.1",
        "PORT": parts.port or 5432,
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        # Every thread that talks to Postgres belongs to a bounded pool and keeps its connection.
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 3,
            # Only for statements that ask for it; see apps.core.db.prepared.
            "prepare_threshold": 5,
            "options": "-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000",
        },
    }


DATABASES = {"default": _database(_env.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    "default": {
        "BACKEND": "apps.core.cache.TolerantRedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 1.0, "socket_connect_timeout": 1.0},
    }
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
SIGNUP_POLICY = _env.signup
BOOTSTRAP_PASSWORD = _env.bootstrap_password

# Signing in: by e-mail address, through allauth's JSON API. Addresses are never verified, because a self-hosted server
# often has no mail; PARLEY_EMAIL_URL is for forgotten passwords.
LOGIN_URL = "/sign-in"
LOGOUT_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "apps.accounts.api.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Parley] "
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS: dict[str, str] | bool = {
    "signup": "10/m/ip,100/d/ip",
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/5m/key",
    "reset_password": "10/m/ip,3/10m/key",
    "change_password": "5/m/user",
    "reauthenticate": "10/m/user",
}
ALLAUTH_TRUSTED_PROXY_COUNT = _env.trusted_proxies
HEADLESS_ONLY = True
HEADLESS_CLIENTS = ("browser",)
HEADLESS_SERVE_SPECIFICATION = True
HEADLESS_SPECIFICATION_TEMPLATE_NAME = None
HEADLESS_FRONTEND_URLS = {
    "account_signup": f"{PUBLIC_URL}/sign-up",
    "account_reset_password": f"{PUBLIC_URL}/sign-in",
    "account_reset_password_from_key": f"{PUBLIC_URL}/reset-password/{{key}}",
    "account_confirm_email": f"{PUBLIC_URL}/confirm-email/{{key}}",
}

# smtp://user:password@host:587 (STARTTLS, except on this machine) or smtps://…:465.
_mail = urlsplit(_env.email_url)
MAIL_CONFIGURED = bool(_env.email_url)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if MAIL_CONFIGURED else 'dummy'}.EmailBackend"
EMAIL_HOST = _mail.hostname or "127.0.0.1"
EMAIL_PORT = _mail.port or (465 if _mail.scheme == "smtps" else 587)
EMAIL_HOST_USER = unquote(_mail.username or "")
EMAIL_HOST_PASSWORD = unquote(_mail.password or "")
EMAIL_USE_SSL = _mail.scheme == "smtps"
EMAIL_USE_TLS = _mail.scheme == "smtp" and EMAIL_HOST not in ("127.0.0.1", "localhost")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = _env.email_from or f"Parley <no-reply@{urlsplit(PUBLIC_URL).hostname}>"

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = int(timedelta(days=30).total_seconds())
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PUBLIC_URL.startswith("https://") else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.accounts.api.authentication.ActorAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["apps.core.http.ORJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.http.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "apps.api.api.schema.Schema",
    "EXCEPTION_HANDLER": "apps.core.http.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Parley API",
    "DESCRIPTION": (
        "Conversations, runs and files. Errors are problem details (RFC 9457) with a stable `code`.\n\n"
        "Signing in is allauth's JSON API: POST `/_allauth/browser/v1/auth/login` and `/auth/signup` with "
        "`{email, password}`, DELETE `/auth/session` to sign out; its own schema is at `/_allauth/openapi.json`.\n\n"
        "`/ws/notifications` is a WebSocket that tells a signed-in person's tabs what changed: "
        "`{type: conversation | file | run | model, ...}`."
    ),
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api",
    # Choices stay inline: components named after fields that happen to share a name help nobody.
    "POSTPROCESSING_HOOKS": ["apps.api.api.schema.finish_schema"],
}

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 900, "socket_timeout": 10, "socket_connect_timeout": 2}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_TASK_TIME_LIMIT = 840
CELERY_TASK_SOFT_TIME_LIMIT = 780
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_TASK_ROUTES = {
    "files.verify": {"queue": "ingest"},
    "files.parse": {"queue": "ingest"},
    "files.index": {"queue": "ingest"},
    "files.ocr": {"queue": "ocr"},
    "files.embed": {"queue": "embed"},
    "files.sync": {"queue": "ingest"},
    "files.summary": {"queue": "embed"},
}
CELERY_BEAT_SCHEDULE = {
    "files.sweep": {"task": "files.sweep", "schedule": 10.0, "options": {"expires": 10.0}},
    "files.sync": {"task": "files.sync", "schedule": 60.0, "options": {"expires": 60.0}},
}

STATIC_URL = "/static/"
STATIC_ROOT: Path | None = REPOSITORY / "build" / "static"
FRONTEND_DIST = REPOSITORY / "frontend" / "dist"
STATICFILES_DIRS = [("app", FRONTEND_DIST)] if FRONTEND_DIST.exists() else []
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Parley console",
    "SITE_HEADER": "Parley console",
    "SITE_URL": "/",
    "SIDEBAR": {
        "show_search": True,
        "navigation": [
            {
                "title": title,
                "items": [{"title": name, "icon": icon, "link": reverse_lazy(link)} for name, icon, link in items],
            }
            for title, items in (
                (
                    "People",
                    (
                        ("Users", "person", "admin:accounts_user_changelist"),
                        ("Organizations", "groups", "admin:accounts_organization_changelist"),
                        ("Memberships", "badge", "admin:accounts_membership_changelist"),
                        ("API keys", "key", "admin:accounts_apikey_changelist"),
                    ),
                ),
                (
                    "Work",
                    (
                        ("Runs", "bolt", "admin:conversations_run_changelist"),
                        ("Files", "description", "admin:files_file_changelist"),
                        ("Vectors", "scatter_plot", "admin:files_vectorversion_changelist"),
                        ("Usage", "receipt_long", "admin:accounts_usageentry_changelist"),
                    ),
                ),
                ("Inference", (("Replicas", "dns", "console_replicas"),)),
            )
        ],
    },
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
APPEND_SLASH = False

# Object storage: S3 when an endpoint is given, else files below the state directory.
S3_ENDPOINT = _env.s3_endpoint
S3_PUBLIC_ENDPOINT = _env.s3_public_endpoint or S3_ENDPOINT
S3_BUCKET = _env.s3_bucket
S3_ACCESS_KEY = _env.s3_access_key
S3_SECRET_KEY = _env.s3_secret_key
S3_REGION = _env.s3_region
OBJECTS_DIR = STATE_DIR / "objects"
CLAMD_SOCKET = _env.clamd_socket
CONNECTOR_ROOTS = [root for root in _env.connector_roots.split(":") if root]

FILE_MAX_BYTES = 100 << 20
FILE_MAX_PAGES = MAX_PAGES
FILE_PART_BYTES = 8 << 20
FILE_LEASE_S = _env.file_lease_s
FILES_PER_MESSAGE = 20
FILES_PER_OWNER = 1_000
FILE_BYTES_PER_OWNER = _env.files_mib_per_user << 20

MESSAGE_MAX_CHARS = 200_000
RUN_LEASE_S = 1.5
RUN_LONG_PROMPT_TOKENS = 4_096
RUN_RESERVED_OUTPUT_TOKENS = 2_048
RUN_FLUSH_S = 0.026
RUN_CHECKPOINT_S = 0.5
RUN_LOG_TTL_S = 3_600
RUN_LOG_LINGER_S = 300
RUN_HEARTBEAT_S = 15.0
RUN_DEADLINE_S = 900
RUN_MAX_OUTPUT_TOKENS = 1_024
RUN_NO_REPLICA_S = 60
# How long a runner that is told to stop lets its answers end. Less than what its supervisor waits before it kills.
RUN_DRAIN_S = 15.0
RUN_PASSAGES = 6
RUN_SURVEY_PASSAGES = 48
RUNS_PER_RUNNER = 512
BUDGETS = _env.budgets
ADMISSION_POLICY = read_policy(BUDGETS)
RUNS_PER_USER_PER_MINUTE = _env.runs_per_minute
RUN_QUEUE_PER_SLOT = 4
REPLICA_URLS = _env.replica_urls
EMBEDDING_MODEL = _env.embedding_model
RERANK_MODEL = _env.rerank_model

LOGGING_CONFIG = "apps.core.logs.configure"
LOGGING: dict[str, Any] = {"format": _env.log_format, "level": "INFO"}
