"""What `/v1/chat/completions` accepts, checked before anything is started.

Unknown fields are ignored, since clients send vendors' own ones. Known fields that would change the answer and
are not supported are refused by name, never dropped in silence.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MESSAGES_MAX = 2_000
PARTS_MAX = 500
TOOLS_MAX = 128

Text = Annotated[str, StringConstraints(max_length=1 << 20)]
Short = Annotated[str, StringConstraints(max_length=512)]


class Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ContentPart(Shape):
    """One part of a message. Only text is read; anything else is refused."""

    type: Short
    text: Text | None = None
    refusal: Text | None = None


class CalledFunction(Shape):
    name: Annotated[str, StringConstraints(max_length=64)]
    arguments: Text


class CalledTool(Shape):
    """What an earlier answer called, as it was given out."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    type: Literal["function"] = "function"
    function: CalledFunction


class InputMessage(Shape):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | Annotated[list[ContentPart], Field(max_length=PARTS_MAX)] | None = None
    name: Short | None = None
    tool_calls: Annotated[list[CalledTool], Field(max_length=TOOLS_MAX)] | None = None
    tool_call_id: Short | None = Field(None, description="Of a tool's result: the call that it belongs to.")
    function_call: Any = None


class StreamOptions(Shape):
    include_usage: bool = False


class ResponseFormat(BaseModel):
    """`text`, `json_object`, or `json_schema` with a schema that the engine enforces."""

    model_config = ConfigDict(extra="allow", frozen=True)
    type: Literal["text", "json_object", "json_schema"]


class ChatRequest(Shape):
    """The body of a chat completion."""

    model: Short = Field(description="A model's id as /v1/models lists it, or `auto`.", examples=["auto"])
    messages: list[InputMessage] = Field(min_length=1, max_length=MESSAGES_MAX)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, le=1 << 20, description="The older name of max_completion_tokens.")
    max_completion_tokens: int | None = Field(None, ge=1, le=1 << 20)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, float] | None = Field(None, max_length=300)
    stop: Short | Annotated[list[Short], Field(max_length=4)] | None = None
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63)
    response_format: ResponseFormat | None = None
    n: int | None = Field(1, description="Only 1.")
    user: Short | None = None
    metadata: dict[Short, Short] | None = Field(None, max_length=16)
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[Any] | None = Field(None, description="Functions that the caller can execute; Parley executes none.")
    tool_choice: Any = Field(None, description="`none`, `auto`, `required`, or a function by its name.")
    parallel_tool_calls: bool | None = None
    functions: list[Any] | None = None
    function_call: Any = None
    audio: Any = None
    modalities: list[Short] | None = None

    @property
    def output_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage
