"""Downloads one repository of the Hugging Face hub into a folder. Run by the engine's Python:

    python fetch_hub.py <org/name> <revision> <folder>

Imports nothing of Parley, since it runs in another environment. Progress goes to standard output, a JSON object a
line.
"""

from __future__ import annotations

import json
import sys

PATTERNS = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken")


def main(repository: str, revision: str, target: str) -> None:
    from huggingface_hub import snapshot_download

    sys.stdout.write(json.dumps({"phase": f"downloading {repository}", "step": 0, "steps": 1}) + "\n")
    sys.stdout.flush()
    snapshot_download(repository, revision=revision, local_dir=target, allow_patterns=list(PATTERNS))


if __name__ == "__main__":
    main(*sys.argv[1:4])
