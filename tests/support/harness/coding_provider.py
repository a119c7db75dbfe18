"""A coding model as a provider on the loopback serves it: tool calls in each program's own form, and a bill.

The next step depends only on the number of tool calls in the conversation, as in ``coding_models``. In *code
mode* a program has one tool for JavaScript, which calls the others; an item of the input has it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from codetaste.gateway.upstream import GatewayModel, gateway_model
from codetaste.harness.install.store import InstalledAgent
from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from support.harness.coding_models import DONE, Step, edit_steps, shell_step
from support.llm.bill_run import KEY_ENV, QUICK, RATES, key_in_environment
from support.llm.provider.exchange import Exchange, Handler
from support.llm.provider.server import send_reply, text

_CALLS = frozenset({"function_call", "custom_tool_call"})
CODE_TOOL = "exec"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def plan_with_picture(tools: set[str]) -> list[Step]:
    """Return steps that edit, look at a picture, call a tool that is not there, and run commands."""
    path = "/testbed/a.png"
    looks: dict[str, dict[str, Any]] = {
        "Read": {"file_path": path},
        "read_file": {"file_path": path, "absolute_path": path},
        "view_image": {"path": path},
        "no_such_tool": {},
    }
    return [
        shell_step(tools, f"echo {PICTURE} | base64 -d >{path}"),
        *edit_steps(tools),
        *((name, given) for name, given in looks.items() if name in tools or name == "no_such_tool"),
        shell_step(tools, "git status --short"),
        shell_step(tools, "false"),
    ]


def make_loopback_model(agent: InstalledAgent, url: str, folder: Path, name: str) -> GatewayModel:
    """Return the gateway's model for a provider on the loopback."""
    protocol = agent.adapter.protocol
    base = url if protocol == "anthropic" else f"{url}/v1"
    fields: dict[str, Any] = {"price": RATES["expensive"], "api_key_env": KEY_ENV}
    config = ModelConfig(id="m", provider=protocol, model=name, base_url=base, **fields)
    with key_in_environment():
        metered = build_metered_model(config, base_dir=folder, record_dir=folder)
        return gateway_model(config, replace(metered, retries=QUICK))


def serve_plan(
    plan: Callable[[set[str]], list[Step]], faults: dict[int, list[Handler]] | None = None, end: str = DONE
) -> Handler:
    """Return a handler that makes the tool calls of ``plan`` one by one, and then replies ``end``.

    Args:
        plan: returns the steps for the tools of a program.
        faults: handlers that answer, once each, at a number of tool calls in the conversation.
        end: the last reply.
    """
    waiting = {at: deque(handlers) for at, handlers in (faults or {}).items()}

    async def code(exchange: Exchange) -> None:
        tools, made = dict(_tools(exchange.body)), _calls_in(exchange.body)
        if not tools:
            await send_reply(exchange, text("none"))
        elif waiting.get(made):
            await waiting[made].popleft()(exchange)
        else:
            names = {*tools} if CODE_TOOL not in tools else {"exec_command", "apply_patch", "view_image"}
            steps = plan(names)
            block = _call(tools, steps[made], f"call_{made}") if made < len(steps) else text(end)
            await send_reply(exchange, block, stop="tool_use" if made < len(steps) else "end_turn")

    return code


def _tools(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools of a request by name, those in items and namespaces included."""
    items = body.get("input") or ()
    added = [tool for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
    for tool in [*(body.get("tools") or ()), *added]:
        for inner in tool["tools"] if tool.get("type") == "namespace" else [tool]:
            named = inner.get("function", inner)
            if "name" in named:
                yield named["name"], {**inner, "namespace": tool["name"]} if inner is not tool else inner


def _calls_in(body: dict[str, Any]) -> int:
    items = body.get("input") or ()
    messages = body.get("messages") or ()
    blocks = [
        block for each in messages if isinstance(each.get("content"), list) for block in each["content"]
    ]
    return (
        sum(item.get("type") in _CALLS for item in items)
        + sum(len(each.get("tool_calls") or ()) for each in messages)
        + sum(block.get("type") == "tool_use" for block in blocks)
    )


def _call(tools: dict[str, dict[str, Any]], step: Step, call_id: str) -> dict[str, Any]:
    name, arguments = step
    freeform = {"type": "custom_tool_call", "id": f"ctc_{call_id}", "call_id": call_id, "status": "completed"}
    if CODE_TOOL in tools:
        given = arguments["input"] if name == "apply_patch" else arguments
        shown = "image(r.image_url)" if name == "view_image" else "text(r)"
        code = f"const r = await tools.{name}({json.dumps(given)}); {shown};"
        tool = tools[CODE_TOOL]
        where = {"namespace": tool["namespace"]} if "namespace" in tool else {}
        return {**freeform, "name": CODE_TOOL, "input": code, **where}
    if tools.get(name, {}).get("type") == "custom" and "input" in arguments:
        return {**freeform, "name": name, "input": arguments["input"]}
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
