"""What other apps may use of conversations and runs."""

from apps.conversations.selectors import run_view
from apps.conversations.services.admission import admission_policy, admit
from apps.conversations.services.api_runs import ApiCall, find_api_run, start_api_run
from apps.conversations.services.routing import usable_models
from apps.conversations.services.runs import cancel_run
from apps.conversations.types import ChatMessage, Lane, RunFrame, RunParams, RunState, StartedRun

__all__ = [
    "ApiCall",
    "ChatMessage",
    "Lane",
    "RunFrame",
    "RunParams",
    "RunState",
    "StartedRun",
    "admission_policy",
    "admit",
    "cancel_run",
    "find_api_run",
    "run_view",
    "start_api_run",
    "usable_models",
]
