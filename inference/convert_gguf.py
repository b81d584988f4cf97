"""Turns one GGUF file into a folder of bfloat16 safetensors that vLLM serves. Run by the engine's Python:

    python convert_gguf.py <file.gguf> <folder>

Responsible for: weights, tokenizer, chat template and end token, checked before it reports success. It imports
nothing of Parley, since it runs in another environment. Progress goes to standard output, a JSON object a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PHASES = ("loading libraries", "reading the tokenizer", "converting weights", "writing weights")


def say(phase: int) -> None:
    sys.stdout.write(json.dumps({"phase": PHASES[phase], "step": phase, "steps": len(PHASES)}) + "\n")
    sys.stdout.flush()


def main(source: Path, target: Path) -> None:
    say(0)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    say(1)
    tokenizer = AutoTokenizer.from_pretrained(str(source.parent), gguf_file=source.name)
    fix_tokenizer(tokenizer, source)
    say(2)
    model = AutoModelForCausalLM.from_pretrained(
        str(source.parent),
        gguf_file=source.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    say(3)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    check(tokenizer, target)


def fix_tokenizer(tokenizer: Any, source: Path) -> None:
    """GGUF names the pre-tokenizer but does not carry it; SmolLM's splits digits one by one, which gets lost."""
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers

    field = GGUFReader(str(source)).get_field("tokenizer.ggml.pre")
    if field is not None and str(field.contents()) == "smollm":
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )


def check(tokenizer: Any, target: Path) -> None:
    """A chat must end where the model was taught to end, or every answer runs on to its limit."""
    if not tokenizer.chat_template:
        raise SystemExit("the file has no chat template")
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    if tokenizer.eos_token not in prompt:
        raise SystemExit(f"the chat template never writes the end token {tokenizer.eos_token!r}")
    if not any(target.glob("*.safetensors")) or not (target / "tokenizer.json").exists():
        raise SystemExit("nothing was written")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
