"""Whatever the official clients' request types have is allowed, or refused for a reason that stands here.

A release of a client with something new fails here with its name: read how it is billed, then allow it in
``allowed.py``, or add the name to a reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.llm.wire.common.allow_list import Items, Kinds
from support.llm.provider.server import PROTOCOLS, Protocol
from support.llm.sdk_requests import refused_names

REASONS = {
    "the provider runs it, and bills it apart": """
        tools[]<advisor_20260301> tools[]<apply_patch> tools[]<browser_toolset_20260801>
        tools[]<code_execution_20250522> tools[]<code_execution_20250825> tools[]<code_execution_20260120>
        tools[]<code_execution_20260521> tools[]<code_interpreter> tools[]<file_search>
        tools[]<image_generation> tools[]<mcp> tools[]<mcp_toolset> tools[]<programmatic_tool_calling>
        tools[]<shell> tools[]<tool_search_tool_bm25> tools[]<tool_search_tool_bm25_20251119>
        tools[]<tool_search_tool_regex> tools[]<tool_search_tool_regex_20251119> tools[]<tool_search>
        tools[]<tool_search>.execution=server tools[]<web_fetch_20250910> tools[]<web_fetch_20260209>
        tools[]<web_fetch_20260309> tools[]<web_fetch_20260318> tools[]<web_search>
        tools[]<web_search_20250305> tools[]<web_search_20260209> tools[]<web_search_20260318>
        tools[]<web_search_2025_08_26> tools[]<web_search_preview> tools[]<web_search_preview_2025_03_11>
        .allowed_callers .output_schema max_tool_calls mcp_servers container web_search_options image
        """,
    "the provider adds instructions for it that its bytes do not bound": """
        tools[]<bash_20241022> tools[]<bash_20250124> tools[]<computer> tools[]<computer_20241022>
        tools[]<computer_20250124> tools[]<computer_20251124> tools[]<computer_toolset_20260801>
        tools[]<computer_use_preview> tools[]<local_shell> tools[]<memory_20250818>
        tools[]<text_editor_20241022> tools[]<text_editor_20250124> tools[]<text_editor_20250429>
        tools[]<text_editor_20250728> .toolset_name
        """,
    "of tools that the provider runs, or of stored content": """
        content[]<advisor_tool_result> content[]<bash_code_execution_tool_result>
        content[]<code_execution_tool_result> content[]<container_upload> content[]<mcp_tool_listing>
        content[]<mcp_tool_result> content[]<mcp_tool_use> content[]<server_tool_use>
        content[]<text_editor_code_execution_tool_result> content[]<tool_search_tool_result>
        content[]<web_fetch_tool_result> content[]<web_search_tool_result> content[]<browser_state>
        .caller .caller.tool_id .caller.type=code_execution_20250825 .caller.type=code_execution_20260120
        input[]<apply_patch_call> input[]<apply_patch_call_output>
        input[]<code_interpreter_call> input[]<computer_call> input[]<computer_call_output>
        input[]<file_search_call> input[]<image_generation_call> input[]<item_reference>
        input[]<local_shell_call> input[]<local_shell_call_output> input[]<mcp_approval_request>
        input[]<mcp_approval_response> input[]<mcp_call> input[]<mcp_list_tools> input[]<program>
        input[]<program_output> input[]<shell_call> input[]<shell_call_output> input[]<web_search_call>
        input[]<tool_search_call>.execution=server input[]<tool_search_output>.execution=server
        conversation previous_response_id prompt thread .file_id .source<file>
        include[]=code_interpreter_call.outputs include[]=computer_call_output.output.image_url
        include[]=file_search_call.results include[]=web_search_call.action.sources
        include[]=web_search_call.results include[]=message.input_image.image_url
        """,
    "its bytes do not bound its tokens": """
        <document> <search_result> content[]<file> <input_file> content[]<input_audio> messages[].audio
        audio .source<url> .data=list .transformations .citations .citations=list
        """,
    "the provider changes, clears or loads the prompt": """
        content[]<compaction> content[]<fallback> content[]<tool_addition> content[]<tool_removal>
        content[]<tool_reference> input[]<compaction> input[]<compaction_trigger>
        input[]<configuration_update> compaction context_management edits[]<clear_tool_uses_20250919>
        edits[]<compact_20260112> .keep=BetaThinkingTurnsParam messages[].clear_at .defer_loading
        thinking.block_binding truncation reasoning.context=auto reasoning.context=current_turn
        """,
    "decides what a request or its cache costs": """
        billing_policy .cache_control cache_control .cache_control.ttl fallback_credit_token fallbacks
        inference_geo output_config.task_budget prompt_cache_options prompt_cache_retention
        prompt_cache_key .prompt_cache_breakpoint reasoning.mode service_tier=auto service_tier=fast
        service_tier=flex service_tier=priority service_tier=scale service_tier=ultrafast speed
        workspace_id access_programs user_profile_id
        """,
    "more than one reply, or one that is not text": """
        background background_options moderation modalities prediction .async diagnostics
        """,
    "without a choice, a provider may leave tools out of its count": """
        tool_choice<any> tool_choice<none> tool_choice<tool> tool_choice=none tool_choice=required
        tool_choice<auto>.disable_parallel_tool_use tool_choice=ToolChoiceAllowedParam
        tool_choice=ToolChoiceApplyPatchParam tool_choice=ToolChoiceCustomParam
        tool_choice=ToolChoiceFunctionParam tool_choice=ToolChoiceMcpParam tool_choice=ToolChoiceShellParam
        tool_choice=ToolChoiceSpecificProgrammaticToolCallingParam tool_choice=ToolChoiceTypesParam
        tool_choice=ChatCompletionAllowedToolChoiceParam tool_choice=ChatCompletionNamedToolChoiceParam
        tool_choice=ChatCompletionNamedToolChoiceCustomParam function_call messages[].function_call functions
        """,
    "absent, it is what is allowed, or bounded": """
        tool_choice=absent .keep=absent .keep=BetaAllThinkingTurnsParam .citations=absent store=absent
        service_tier=absent reasoning.context=absent
        """,
    "no supported program sends it": """
        betas tools[]<custom> .eager_input_streaming .input_examples include[]=message.output_text.logprobs
        input[]<function_call_output>.name .namespace .status
        logit_bias logprobs messages[].role=function messages[].tool_calls[]<custom> metadata
        reasoning.generate_summary safety_identifier store=True stream_options
        stream_options.include_obfuscation top_logprobs user verbosity
        """,
}
"""Names of what is refused, or their ends, by the reason."""

ENDS = " ".join(REASONS.values()).split()

CLIENT_TOOLS = {
    "anthropic": {None, "custom"},
    "openai": {"function", "custom", "namespace", "tool_search"},
    "openai-chat": {None, "function"},
}
"""Types of tools that the client runs; ``tool_search`` with the execution ``client``."""


def request_types(protocol: Protocol) -> list[Any]:
    if protocol == "anthropic":
        import anthropic.types.beta.message_create_params as beta
        import anthropic.types.message_create_params as stable

        return [stable.MessageCreateParams, beta.MessageCreateParams]
    if protocol == "openai":
        import openai.types.responses.response_create_params as responses

        return [responses.ResponseCreateParams]
    import openai.types.chat.completion_create_params as chat

    return [chat.CompletionCreateParams]


def names_in(protocol: Protocol) -> set[str]:
    body = ALLOW_LISTS[protocol].body
    return {name for given in request_types(protocol) for name in refused_names(body, given)}


def ends_with(name: str, end: str) -> bool:
    """Whether a name ends with whole steps of a path."""
    return f".{name}".endswith(end if end[0] in ".<" else f".{end}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_everything_in_the_types_of_the_clients_is_allowed_or_refused_for_a_reason(
    protocol: Protocol,
) -> None:
    names = names_in(protocol)
    assert sorted(name for name in names if not any(ends_with(name, end) for end in ENDS)) == []


def test_no_reason_is_given_for_what_is_not_refused() -> None:
    names = set().union(*map(names_in, PROTOCOLS))
    assert [end for end in ENDS if not any(ends_with(name, end) for name in names)] == []
    assert len(ENDS) == len(set(ENDS))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_tools_that_the_client_runs_are_allowed(protocol: Protocol) -> None:
    tools = ALLOW_LISTS[protocol].body.forms["tools"]
    assert isinstance(tools, Items)
    assert isinstance(tools.form, Kinds)
    assert set(tools.form.forms) == CLIENT_TOOLS[protocol]
