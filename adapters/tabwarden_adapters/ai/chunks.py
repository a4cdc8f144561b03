"""What one event of a chat completion says (OpenAI API, `chat.completion.chunk`). Fields that are not used
are ignored: every gateway has some of its own."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from tabwarden.errors import ActionError, Code
from tabwarden.limits import MAX_SAFE_INTEGER

from tabwarden_adapters.ai.faults import ANSWER, FILTERED, failed

DONE: Final = "[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_DECODER: Final = msgspec.json.Decoder(_Chunk)


@dataclass(frozen=True, slots=True)
class Chunk:
    """`finished`: the model has said all it will. Tokens are as the gateway counts them, None when it does
    not."""

    text: str = field(default="", repr=False)
    finished: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


def read_chunk(data: str) -> Chunk:
    """Raises `ActionError`: `failure` for what is not a chunk or says that the gateway failed,
    `content-denied` when the gateway's own filter took the answer away."""
    chunk = None
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        chunk = _DECODER.decode(data.encode("utf-8"))
    if chunk is None or chunk.error is not None:
        raise failed(ANSWER)
    text, finished = "", False
    for choice in chunk.choices or ():
        if choice.index != 0:
            continue  # one answer was asked for
        if choice.delta is not None:
            text += (choice.delta.content or "") + (choice.delta.refusal or "")
        if choice.finish_reason == "content_filter":
            raise ActionError(Code.CONTENT_DENIED, rule=FILTERED, committed=True)
        if choice.finish_reason is not None:
            if choice.finish_reason not in ("stop", "length"):
                raise failed(ANSWER)  # a call of a tool: none was offered
            finished = True
    usage = chunk.usage or _Usage()
    return Chunk(text, finished, _count(usage.prompt_tokens), _count(usage.completion_tokens))


def _count(tokens: int | None) -> int | None:
    return tokens if tokens is not None and 0 <= tokens <= MAX_SAFE_INTEGER else None
