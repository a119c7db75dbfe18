"""Agents of a few lines in a sandbox: the result of each way to end."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConfigError, StorageFull
from codetaste.harness import run as running
from codetaste.harness import run as streaming
from codetaste.harness.adapter import Adapter, read_adapter
from codetaste.harness.install.build import install_agent
from codetaste.harness.result import AgentResult
from codetaste.harness.run import AgentTask, run_agent
from codetaste.harness.testbed.testbed import testbed_archive
from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxProvider, SandboxSpec
from support.harness.adapters import PLAIN_MANIFEST, make_adapter, make_published_adapter
from support.harness.agent_job import prepare_small_testbed

pytestmark = pytest.mark.anyio

REPORT_SUCCESS = 'echo \'{"type": "end", "ok": true, "text": "all well"}\'\n'
REPORT_FAILURE = 'echo \'{"type": "end", "ok": false, "text": "no luck"}\'\n'


async def install_and_run(
    folder: Path,
    provider: SandboxProvider,
    adapter: Adapter,
    *,
    task: AgentTask | None = None,
    stopped: anyio.Event | None = None,
    wall_s: float = 60.0,
    grace_s: float = 20.0,
    inspect_sandbox: Any = None,
    events: Path | None = None,
) -> AgentResult:
    """Install and run an agent; ``inspect_sandbox`` gets the sandbox before it is removed."""
    agent = await install_agent(adapter, None, folder / "cache", print)
    task = task or AgentTask("do it", "model-1", "http://127.0.0.1:8787", "token-1")
    spec = SandboxSpec("run", mounts=agent.mounts)
    async with provider.open(spec) as sandbox:
        description = {"/task_description/description.md": task.prompt.encode()}
        await sandbox.put(testbed_archive(await prepare_small_testbed(folder), description))
        result = await run_agent(
            agent,
            sandbox,
            task,
            CommandLimits(wall_s=wall_s),
            events or folder / "events",
            stopped,
            grace_s=grace_s,
        )
        if inspect_sandbox is not None:
            await inspect_sandbox(sandbox)
        return result


@pytest.mark.parametrize(
    ("script", "reason", "problem"),
    [
        (REPORT_SUCCESS, "success", ""),
        (REPORT_FAILURE, "error", "no luck"),
        (REPORT_FAILURE + REPORT_SUCCESS, "success", ""),
        (REPORT_SUCCESS + REPORT_FAILURE, "error", "no luck"),
        (REPORT_SUCCESS + "exit 3\n", "execution_error", "it exited with 3: all well"),
        (REPORT_FAILURE + "exit 3\n", "error", "no luck"),
        ("exit 0\n", "unknown", "it exited with 0, but reported no result"),
        ('echo \'{"type": "end", "ok": true, "text": "error: 500"}\'\n', "error", "error: 500"),
        ("echo oh no >&2; exit 1\n", "execution_error", "it exited with 1: oh no"),
        (REPORT_SUCCESS + "kill -9 $$\n", "execution_error", "it was killed"),
        (REPORT_SUCCESS + "kill -TERM $$\n", "execution_error", "it was killed"),
        ("exec /no/such/program\n", "execution_error", "it exited with"),
        ("exit 53\n", "execution_error", "it exited with 53: out of turns"),
    ],
)
async def test_success_requires_exit_code_end_event_and_text(
    script: str, reason: str, problem: str, tmp_path: Path, provider: SandboxProvider
) -> None:
    adapter = make_adapter(tmp_path / "mine", script, extra_toml='exit_codes = { 53 = "out of turns" }')
    result = await install_and_run(tmp_path, provider, adapter)
    assert (result.finish_reason, problem in result.problem) == (reason, True), result
    assert (result.problem == "") == (reason == "success")


async def test_exit_code_decides_without_end_events(tmp_path: Path, provider: SandboxProvider) -> None:
    assert (
        await install_and_run(tmp_path, provider, make_adapter(tmp_path / "a", "exit 0\n", end_events=False))
    ).finish_reason == "success"


async def test_agent_gets_prompt_model_and_options_only(
    tmp_path: Path, provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    script = """
    cat >/output/prompt
    env | grep -v '^CODETASTE_COMMAND' | sort >/output/env
    pwd >/output/where; id -u >>/output/where; echo "$HOME" >>/output/where
    touch "$CODETASTE_AGENT/x" 2>/dev/null && echo writable >>/output/where
    true
    """
    toml = PLAIN_MANIFEST.replace('"none"', '"openai"') + 'env = { QUIET = "1" }\n'
    toml += '[options]\neffort = { default = "low" }\nfast = { default = false }\n'
    make_adapter(tmp_path / "mine", script, end_events=False)
    (tmp_path / "mine" / "agent.toml").write_text(f'install = ""\n{toml}')
    adapter = read_adapter(tmp_path / "mine")
    prompt = "Ünïcode $HOME `x` 'y'\n" * 20_000
    contents: dict[str, str] = {}

    async def inspect(sandbox: Sandbox) -> None:
        for name in ("prompt", "env", "where"):
            done = await sandbox.run(["cat", f"/output/{name}"], limits=CommandLimits(output_bytes=10**7))
            contents[name] = done.stdout.decode()

    task = AgentTask(prompt, "m-1", "http://127.0.0.1:8787/x", "t-1", {"fast": True})
    result = await install_and_run(tmp_path, provider, adapter, task=task, inspect_sandbox=inspect)
    assert result.finish_reason == "success"
    assert contents["prompt"] == prompt
    assert contents["where"].split() == ["/testbed", "1000", "/home/agent"]
    env = dict(line.split("=", 1) for line in contents["env"].splitlines() if "=" in line)
    codetaste_env = {name: value for name, value in env.items() if name.startswith("CODETASTE_")}
    assert codetaste_env.pop("CODETASTE_AGENT").startswith("/opt/agents/mine-1-")
    assert codetaste_env == {
        "CODETASTE_VERSION": "1",
        "CODETASTE_PROTOCOL": "openai",
        "CODETASTE_PROMPT": "/task_description/description.md",
        "CODETASTE_MODEL": "m-1",
        "CODETASTE_BASE_URL": "http://127.0.0.1:8787/x",
        "CODETASTE_TOKEN": "t-1",
        "CODETASTE_OPTIONS": '{"effort": "low", "fast": true}',
        "CODETASTE_OPTION_EFFORT": "low",
        "CODETASTE_OPTION_FAST": "true",
    }
    assert env["QUIET"] == "1"
    assert "not-a-key" not in contents["env"]


async def test_unknown_option_is_a_config_error(tmp_path: Path, provider: SandboxProvider) -> None:
    with pytest.raises(ConfigError, match=r"options\.speed: unknown option"):
        await install_and_run(
            tmp_path,
            provider,
            make_adapter(tmp_path / "a", REPORT_SUCCESS),
            task=AgentTask("x", options={"speed": 1}),
        )


async def test_agent_continuing_over_budget_is_ended_after_grace(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    script = "trap '' TERM INT HUP; echo hello; while :; do sleep 1; done\n"
    stopped = anyio.Event()
    commands = ["?"]

    async def inspect(sandbox: Sandbox) -> None:
        done = await sandbox.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])
        commands[0] = done.stdout.decode()

    async with anyio.create_task_group() as tasks:

        async def stop_after_output() -> None:
            while not (tmp_path / "events").exists() or not (tmp_path / "events").stat().st_size:  # noqa: ASYNC110
                await anyio.sleep(0.05)
            stopped.set()

        tasks.start_soon(stop_after_output)
        result = await install_and_run(
            tmp_path,
            provider,
            make_adapter(tmp_path / "a", script),
            stopped=stopped,
            grace_s=0.5,
            inspect_sandbox=inspect,
        )
    assert (result.finish_reason, result.exit_code) == ("budget_exceeded", None)
    assert result.stream_bytes == len("hello\n")
    assert "run.sh" not in commands[0]


async def test_success_after_budget_stop_is_budget_exceeded(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    stopped = anyio.Event()
    stopped.set()
    result = await install_and_run(
        tmp_path, provider, make_adapter(tmp_path / "a", REPORT_SUCCESS), stopped=stopped
    )
    assert (result.finish_reason, result.exit_code, result.message) == ("budget_exceeded", 0, "all well")


async def test_agent_is_ended_at_time_limit(tmp_path: Path, provider: SandboxProvider) -> None:
    result = await install_and_run(
        tmp_path, provider, make_adapter(tmp_path / "a", "sleep 1000\n"), wall_s=2.0
    )
    assert (result.finish_reason, result.exit_code) == ("timeout", None)


async def test_long_output_is_truncated_and_last_event_is_read(
    tmp_path: Path, provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming.HeadTailFile.__init__, "__kwdefaults__", {"head": 10_000, "tail": 1000})
    script = 'yes \'{"type": "noise"}\' | head -c 10000000\necho\n' + REPORT_SUCCESS
    result = await install_and_run(tmp_path, provider, make_adapter(tmp_path / "a", script))
    assert (result.finish_reason, result.message) == ("success", "all well")
    assert result.stream_bytes > 10_000_000
    stored = (tmp_path / "events").read_bytes()
    assert len(stored) < 12_000
    assert b"bytes_left_out" in stored
    assert stored.endswith(b'"all well"}\n')


async def test_agent_with_endless_output_is_ended(
    tmp_path: Path, provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_STREAM_BYTES", 3_000_000)
    result = await install_and_run(
        tmp_path, provider, make_adapter(tmp_path / "a", REPORT_SUCCESS + "yes >&2 & exec yes\n")
    )
    assert result.finish_reason == "execution_error"
    assert result.problem.startswith("it wrote more than 3000000 bytes of output")
    assert len(result.stderr) <= 4000


async def test_unwritable_event_file_raises_and_ends_agent(tmp_path: Path, provider: SandboxProvider) -> None:
    adapter = make_adapter(tmp_path / "a", "echo x; sleep 1000\n")
    with pytest.raises(StorageFull, match="/dev/full"):
        await install_and_run(tmp_path, provider, adapter, events=Path("/dev/full"))


async def test_stopped_sandbox_is_an_execution_error(tmp_path: Path, provider: SandboxProvider) -> None:
    agent = await install_agent(make_adapter(tmp_path / "a", "sleep 1000\n"), None, tmp_path / "cache", print)
    async with (
        provider.open(SandboxSpec("run", mounts=agent.mounts)) as sandbox,
        anyio.create_task_group() as tasks,
    ):

        async def stop() -> None:
            await anyio.sleep(1.0)
            await sandbox.stop()

        tasks.start_soon(stop)
        result = await run_agent(agent, sandbox, AgentTask("x"), CommandLimits(), tmp_path / "events")
    assert result.finish_reason == "execution_error"
    assert result.problem


PUBLISHED_RUN = """
[ -f /task_description/description.md ] && [ -f "$(dirname "$0")/agent_config.json" ] || exit 1
echo "working in $(pwd) with $ANTHROPIC_BASE_URL"
theirs >greeting.txt || exit 1
cat >/output/inference_metadata.json <<END
{
  "cost_usd": 0.25,
  "finish_reason": "%s",
  "additional": null
}
END
"""
PUBLISHED_SETUP = """
mkdir -p "$CODETASTE_TREE/bin"
printf '#!/bin/sh\\necho hi\\n' >"$CODETASTE_TREE/bin/theirs"
chmod +x "$CODETASTE_TREE/bin/theirs"
"""


@pytest.mark.parametrize(
    ("reported", "extra", "reason", "problem"),
    [
        ("success", "", "success", ""),
        ("error", "", "error", "error"),
        ("success", "exit 9\n", "execution_error", "it exited with 9"),
        ("error_max_budget_usd", "", "budget_exceeded", "it reached its own cost limit"),
    ],
)
async def test_agent_of_published_harness_runs_and_reports(
    reported: str, extra: str, reason: str, problem: str, tmp_path: Path, provider: SandboxProvider
) -> None:
    adapter = make_published_adapter(
        tmp_path / "theirs", PUBLISHED_RUN % reported + extra, PUBLISHED_SETUP, provider="anthropic"
    )
    contents: list[str] = []

    async def inspect(sandbox: Sandbox) -> None:
        contents.append((await sandbox.run(["cat", "/testbed/greeting.txt"])).stdout.decode())

    result = await install_and_run(tmp_path, provider, adapter, inspect_sandbox=inspect)
    assert (result.finish_reason, result.problem, result.cost_usd) == (reason, problem, Decimal("0.25"))
    assert contents == ["hi\n"]
    last = json.loads((tmp_path / "events").read_text().splitlines()[-1])
    assert last["finish_reason"] == reported
    assert "working in /testbed with http://127.0.0.1:8787" in (tmp_path / "events").read_text()


async def test_token_that_the_agent_prints_is_not_stored(tmp_path: Path, provider: SandboxProvider) -> None:
    script = """
    printf '{"type": "end", "ok": false, "text": "%s' "$(printf %s "$CODETASTE_TOKEN" | cut -c 1-9)"
    sleep 0.5
    printf '%s and ct-secr"}\\nct-s' "$(printf %s "$CODETASTE_TOKEN" | cut -c 10-)"
    env >&2
    """
    task = AgentTask("x", token="ct-secret-token")
    adapter = make_adapter(tmp_path / "mine", script)
    result = await install_and_run(tmp_path, provider, adapter, task=task)
    assert (result.finish_reason, result.problem) == ("error", "[redacted] and ct-secr")
    assert "CODETASTE_TOKEN=[redacted]" in result.stderr
    assert "ct-secret-token" not in result.stderr
    text = '{"type": "end", "ok": false, "text": "[redacted] and ct-secr"}\nct-s'
    assert (tmp_path / "events").read_text() == text


async def test_published_agent_gets_the_published_variables(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    adapter = make_published_adapter(
        tmp_path / "theirs", 'echo "$TIMEOUT,$MODE,$DESCRIPTION_TYPE,$EXTRA"; command -v python3'
    )
    facts = {"CODETASTE_TRACK": "open", "CODETASTE_MODE": "plan", "CODETASTE_TIMEOUT_S": "90"}
    await install_and_run(tmp_path, provider, adapter, task=AgentTask("x", env={**facts, "EXTRA": "e"}))
    assert (tmp_path / "events").read_text().splitlines()[0] == "90,plan,open,e"


async def test_published_agent_without_metadata_has_unknown_result(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    result = await install_and_run(tmp_path, provider, make_published_adapter(tmp_path / "theirs", "true\n"))
    assert result.finish_reason == "unknown"
