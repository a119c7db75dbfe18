"""The supported programs send nothing that a budget refuses, and stop at once at a refusal.

The oldest and the newest release of each program run in a sandbox, and edit, look at a picture and run
commands with their own tools. The allow lists contain nothing that neither they nor our own loop send, but
for the listed reasons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.gateway import app
from codetaste.gateway.request import GatewayRequest
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult, ToolSpec
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.sandbox.base import SandboxProvider
from support.harness.agent_job import NEWEST, PINNED, install_by_name, run_with_model
from support.harness.coding_models import coder
from support.harness.record_requests import known_models, record_session
from support.llm.allow_list_keys import keys_of_list, keys_of_request
from support.llm.protocol_cases import BODIES
from support.llm.provider.protocols import Protocol

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(1200)]

NEWEST_CODEX, NEWEST_CLAUDE, NEWEST_QWEN = (NEWEST[name] for name in ("codex", "claude-code", "qwen-code"))
RUNS: dict[Protocol, tuple[tuple[str, str], ...]] = {
    "anthropic": (
        ("claude-code", "claude-sonnet-4-5"),
        (NEWEST_CLAUDE, "claude-sonnet-4-5"),
        (NEWEST_CLAUDE, "claude-opus-5"),
        (NEWEST_CLAUDE, "claude-sonnet-5-5"),
    ),
    "openai": (
        ("codex", "gpt-5.1-codex"),
        ("codex", "gpt-4.1"),
        (NEWEST_CODEX, "gpt-5.5"),
        (NEWEST_CODEX, "gpt-5.4"),
        (NEWEST_CODEX, "gpt-6.2-sol"),
    ),
    "openai-chat": (
        ("qwen-code", "scripted-1"),
        (NEWEST_QWEN, "scripted-1"),
        (NEWEST_QWEN, "gpt-5.1"),
    ),
}
"""Releases and models: the model decides which tools and fields a program uses."""

LATER: dict[str, str] = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "qwen-code": "@qwen-code/qwen-code",
}
"""The packages whose latest releases are tried, too."""

BETWEEN = {
    "claude-code@2.1.109": "claude-opus-4-6",
    "claude-code@2.1.110": "claude-opus-4-6",
    "claude-code@2.1.252": "claude-sonnet-5",
    "codex@0.98.0": "gpt-5.1-codex",
    "codex@0.99.0": "gpt-5.1-codex",
    "codex@0.100.0": "gpt-5.1-codex",
}
"""Releases that are packed, started or allowed otherwise than the tested ones, and a model of their time."""

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


@pytest.mark.slow
@pytest.mark.parametrize("protocol", RUNS)
async def test_programs_send_what_the_allow_list_has_and_no_more(
    protocol: Protocol, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    allowed = ALLOW_LISTS[protocol]
    used = keys_of_request(allowed, BODIES[protocol](OWN_REQUEST, "m"))
    for number, (name, model) in enumerate(RUNS[protocol]):
        (folder := tmp_path / str(number)).mkdir()
        agent = await install_by_name(name, agents_cache)
        session = await record_session(agent, model, provider, folder)
        assert session.refused == set()
        used |= session.used
    unexplained = [key for key in keys_of_list(allowed) - used if not key.startswith((*allowed.unsent,))]
    assert unexplained == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BETWEEN, *LATER])
async def test_other_release_works_and_sends_nothing_that_is_refused(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    """If the latest one fails, ``record_requests.py`` shows what it sends."""
    if name in LATER:
        found = await anyio.run_process(["npm", "view", LATER[name], "version"])
        name = f"{name}@{found.stdout.decode().strip()}"
    agent = await install_by_name(name, agents_cache)
    model = BETWEEN.get(name) or (await known_models(agent, provider))[0]
    assert (await record_session(agent, model, provider, tmp_path)).refused == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PINNED, *NEWEST.values()])
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
