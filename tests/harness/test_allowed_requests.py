"""The supported programs send nothing that a budget refuses, and stop at once at a refusal.

Both releases of each program run in a sandbox, and edit, look at a picture and run commands with their own
tools. The allow lists contain nothing that neither they nor our own loop send, but for the listed reasons.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codetaste.gateway import app
from codetaste.gateway.request import GatewayRequest
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult, ToolSpec
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.sandbox.base import SandboxProvider
from support.harness.agent_job import install_by_name, run_with_model
from support.harness.coding_models import DONE, Step, coder, edit_steps, follow_plan, shell_step
from support.llm.allow_list_keys import keys_of_list, keys_of_request
from support.llm.protocol_cases import BODIES
from support.llm.provider.protocols import Protocol

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(1200)]

RUNS: dict[Protocol, tuple[tuple[str, str], ...]] = {
    "anthropic": (
        ("claude-code", "claude-sonnet-4-5"),
        ("claude-code@2.1.330", "claude-sonnet-4-5"),
        ("claude-code@2.1.330", "claude-opus-5"),
    ),
    "openai": (
        ("codex", "gpt-5.1-codex"),
        ("codex", "gpt-4.1"),
        ("codex@0.169.0", "gpt-5.5"),
        ("codex@0.169.0", "gpt-5.4"),
    ),
    "openai-chat": (
        ("qwen-code", "scripted-1"),
        ("qwen-code@0.24.4", "scripted-1"),
        ("qwen-code@0.24.4", "gpt-5.1"),
    ),
}
"""Releases and models: the model decides which tools and fields a program uses."""

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CALL = ToolCall("t", "look", {})
OWN_REQUEST = Request(
    "Be brief.",
    (
        Message("user", (TextBlock("Go."),)),
        Message("assistant", (TextBlock("I look."), CALL)),
        Message("user", (ToolResult("t", "seen", is_error=True), TextBlock("Go on."))),
    ),
    (ToolSpec("look", "Look.", {}),),
)


def steps(tools: set[str]) -> list[Step]:
    path = "/testbed/a.png"
    made = shell_step(tools, f"echo {base64.b64encode(PICTURE).decode()} | base64 -d >{path}")
    looks: dict[str, dict[str, Any]] = {
        "Read": {"file_path": path},
        "read_file": {"file_path": path, "absolute_path": path},
        "view_image": {"path": path},
        "no_such_tool": {},
    }
    looked = [(name, given) for name, given in looks.items() if name in tools or name == "no_such_tool"]
    return [
        made,
        *edit_steps(tools),
        *looked,
        shell_step(tools, "git status --short"),
        shell_step(tools, "false"),
    ]


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[GatewayRequest]:
    """The requests that the gateway received."""
    requests: list[GatewayRequest] = []
    parse = app.parse_request

    def record(*arguments: Any, **named: Any) -> GatewayRequest | None:
        request = parse(*arguments, **named)
        if request is not None:
            requests.append(request)
        return request

    monkeypatch.setattr(app, "parse_request", record)
    return requests


@pytest.mark.slow
@pytest.mark.parametrize("protocol", RUNS)
async def test_programs_send_what_the_allow_list_has_and_no_more(
    protocol: Protocol,
    received: list[GatewayRequest],
    tmp_path: Path,
    provider: SandboxProvider,
    agents_cache: Path,
) -> None:
    allowed = ALLOW_LISTS[protocol]
    for number, (name, model) in enumerate(RUNS[protocol]):
        agent, folder = await install_by_name(name, agents_cache), tmp_path / str(number)
        run = await run_with_model(folder, provider, agent, follow_plan(steps), model=model, usd="100")
        assert (run.result.finish_reason, run.result.message) == ("success", DONE), (name, model)
        assert run.usage.refused_request == ""
    used = keys_of_request(allowed, BODIES[protocol](OWN_REQUEST, "m"))
    for request in received:
        assert request.findings.refusals == []
        used |= keys_of_request(allowed, request.wire.body, request.headers, request.query)
    unexplained = [key for key in keys_of_list(allowed) - used if not key.startswith((*allowed.unsent,))]
    assert unexplained == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["claude-code", "claude-code@2.1.330", "codex", "codex@0.169.0", "qwen-code", "qwen-code@0.24.4"]
)
async def test_program_stops_at_once_at_a_refusal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: SandboxProvider, agents_cache: Path
) -> None:
    """Every request with tools gets a field that is not allowed, as if the program had sent it."""
    statuses: list[str] = []
    parse = app.parse_request

    def add_field(data: bytes, *arguments: Any, **named: Any) -> GatewayRequest | None:
        body: Mapping[str, Any] = json.loads(data)
        if body.get("tools"):
            statuses.append(named["headers"].get("user-agent", ""))
            data = json.dumps({**body, "web_search_options": {}}).encode()
        return parse(data, *arguments, **named)

    monkeypatch.setattr(app, "parse_request", add_field)
    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(tmp_path, provider, agent, coder)
    assert run.result.finish_reason == "error"
    assert "web_search_options = {}" in run.usage.refused_request
    assert 'allow = { "web_search_options" = … }' in run.usage.refused_request
    assert len(statuses) <= MOST_REQUESTS.get(name, 1)


MOST_REQUESTS = {"claude-code": 2}
"""Claude Code 2.0.76 repeats a failed stream once without streaming."""
