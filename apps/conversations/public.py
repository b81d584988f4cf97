"""What other apps may use of conversations and runs."""

from apps.conversations.selectors import run_view
from apps.conversations.services.api_runs import ApiCall, find_api_run, start_api_run
from apps.conversations.services.line import admission_policy
from apps.conversations.services.routing import usable_models
from apps.conversations.services.runs import cancel_run
from apps.conversations.types import Lane, RunFrame, RunParams, RunState, StartedRun
from inference.protocol import ChatMessage, WrittenCall

__all__ = [
    "ApiCall",
    "ChatMessage",
    "Lane",
    "RunFrame",
    "RunParams",
    "RunState",
    "StartedRun",
    "WrittenCall",
    "admission_policy",
    "cancel_run",
    "find_api_run",
    "run_view",
    "start_api_run",
    "usable_models",
]
