"""A conversation that is too long is recognised in what the servers of all protocols say."""

from __future__ import annotations

import pytest

from codetaste.errors import ConversationTooLong, ModelError, ModelRefused
from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.common import openai

TOO_LONG = [
    "prompt is too long: 205337 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The decoder prompt (length 40960) is longer than the maximum model length of 32768.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Please reduce the length of the messages or completion.",
]
OTHERS = [
    "messages: at least one message is required",
    "tools.0.name: String should have at most 128 characters",
    "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "The value of temperature is too large",
]

# The window is 4096 and the prompt 118, or the model's largest reply has 8192 tokens.
CAP_TOO_LARGE = {
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 "
    "tokens and your request has 118 input tokens (4096 > 4096 - 118).": 3978,
    "This model's maximum context length is 4096 tokens. However, you requested 4214 tokens (118 in the "
    "messages, 4096 in the completion). Please reduce the length of the messages or completion.": 3978,
    "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total "
    "of 4214 tokens: 118 tokens from the input messages and 4096 tokens for the completion.": 3978,
    "You passed 118 input tokens and requested 4096 output tokens. However, the model's context length is "
    "only 4096 tokens. Please reduce the length of the input prompt.": 3978,
    "input length and `max_tokens` exceed context limit: 118 + 4096 > 4096, decrease input length": 3978,
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens": 8192,
    "max_tokens is too large: 100000. This model supports at most 8192 completion tokens": 8192,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]": 8192,
    "`max_tokens` must be less than or equal to `8192`": 8192,
    "The maximum tokens you requested exceeds the model limit of 8192.": 8192,
}


def errors(message: str, status: int = 400) -> list[ModelError]:
    return [
        anthropic.error_from(
            status, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}, {}
        ),
        openai.error_from(
            status, {"error": {"type": "invalid_request_error", "message": message, "code": None}}, {}
        ),
    ]


@pytest.mark.parametrize("message", TOO_LONG)
def test_messages_of_servers_are_recognised(message: str) -> None:
    for error in errors(message):
        assert isinstance(error, ConversationTooLong)
        assert error.unbilled


@pytest.mark.parametrize("message", OTHERS)
def test_other_refusals_are_not_too_long(message: str) -> None:
    for error in errors(message):
        assert isinstance(error, ModelRefused)
        assert not isinstance(error, ConversationTooLong)


@pytest.mark.parametrize(("message", "most"), CAP_TOO_LARGE.items())
def test_cap_that_does_not_fit_is_named_with_the_largest_that_does(message: str, most: int) -> None:
    body = {"error": {"message": message, "code": "context_length_exceeded", "param": "max_tokens"}}
    exceeded = [openai.error_from(400, body, {})] if most == 3978 else []
    for error in [*errors(message), *exceeded]:
        assert isinstance(error, ModelRefused)
        assert not isinstance(error, ConversationTooLong)
        assert f"lower max_output_tokens to {most} or less" in str(error)


def test_codes_and_status_413_are_recognised() -> None:
    for error in errors("Request exceeds the maximum size", 413):
        assert isinstance(error, ConversationTooLong)
    for code in ("context_length_exceeded", "exceed_context_size_error"):
        error = openai.error_from(400, {"error": {"message": "no", "code": code}}, {})
        assert isinstance(error, ConversationTooLong)
