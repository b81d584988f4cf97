"""What other apps may use of conversations and runs."""

from apps.conversations.selectors import run_view
from apps.conversations.services.admission import admit, known_models, resolve_model
from apps.conversations.services.posting import start_api_run
from apps.conversations.services.runs import cancel_run
from apps.conversations.types import ChatMessage, RunFrame, RunParams, RunState, StartedRun

__all__ = [
    "ChatMessage",
    "RunFrame",
    "RunParams",
    "RunState",
    "StartedRun",
    "admit",
    "cancel_run",
    "known_models",
    "resolve_model",
    "run_view",
    "start_api_run",
]
