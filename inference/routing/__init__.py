"""Which model answers: a decision with reasons, and escalation to a stronger one. Pure; knows no replica."""
