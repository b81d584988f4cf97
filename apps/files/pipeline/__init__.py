"""What happens to a file after its upload: stages with leases, progress, copies of known content, removal.

A stage's truth is its row. Queue messages are hints: losing one costs a sweep interval, getting one twice
costs a look at the row. Nothing here knows Celery's workers or HTTP.
"""
