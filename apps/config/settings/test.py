"""Tests: the real services, a cheap password hash, open sign-up, high limits where a test does not set its own."""

from apps.config.settings.base import *  # noqa: F403
from inference.admission import Budget, Policy, Tier

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SIGNUP_POLICY = "open"
ADMISSION_POLICY = Policy(users=dict.fromkeys(Tier, Budget()))
RUNS_PER_USER_PER_MINUTE = 1_000_000
CELERY_TASK_ALWAYS_EAGER = False
# Hundreds of accounts from one address: a test of these limits sets its own.
ACCOUNT_RATE_LIMITS = False
# Static files come from the finders; there is no collected folder to warn about.
STATIC_ROOT = None
