"""Live reading: the relay of run events, the SSE endpoint and the notification socket.

Nothing here writes to a run. A reader can come and go at any time, on any web process.
"""

from apps.conversations.eventlog import frame_data
from apps.conversations.realtime.relay import Reader, Relay, follow, relay

__all__ = ["Reader", "Relay", "follow", "frame_data", "relay"]
