"""Programs of a few lines in a box: how they end, and that an ending is all that comes of what they do."""

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
from support.harness.adapters import PLAIN, made_agent, published_agent
from support.harness.agent_job import repository

pytestmark = pytest.mark.anyio

OK = 'echo \'{"type": "end", "ok": true, "said": "all well"}\'\n'
BAD = 'echo \'{"type": "end", "ok": false, "said": "no luck"}\'\n'


async def ended(
    folder: Path,
    boxes: SandboxProvider,
    adapter: Adapter,
    *,
    task: AgentTask | None = None,
    stopped: anyio.Event | None = None,
    wall_s: float = 60.0,
    grace_s: float = 20.0,
    after: Any = None,
    events: Path | None = None,
) -> AgentResult:
    """Install and run it; ``after`` is told of the box before it is gone."""
    program = await install_agent(adapter, None, folder / "cache", print)
    task = task or AgentTask("do it", "model-1", "http://127.0.0.1:8787", "token-1")
    spec = SandboxSpec("run", mounts=program.mounts)
    async with boxes.open(spec) as box:
        description = {"/task_description/description.md": task.prompt.encode()}
        await box.put(testbed_archive(await repository(folder), description))
        end = await run_agent(
            program,
            box,
            task,
            CommandLimits(wall_s=wall_s),
            events or folder / "events",
            stopped,
            grace_s=grace_s,
        )
        if after is not None:
            await after(box)
        return end


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        (OK, "success", ""),
        (BAD, "error", "no luck"),
        (BAD + OK, "success", ""),
        (OK + BAD, "error", "no luck"),
        (OK + "exit 3\n", "execution_error", "it exited with 3: all well"),
        (BAD + "exit 3\n", "error", "no luck"),
        ("exit 0\n", "unknown", "it exited with 0, but reported no result"),
        ('echo \'{"type": "end", "ok": true, "said": "error: 500"}\'\n', "error", "error: 500"),
        ("echo oh no >&2; exit 1\n", "execution_error", "it exited with 1: oh no"),
        (OK + "kill -9 $$\n", "execution_error", "it was killed"),
        (OK + "kill -TERM $$\n", "execution_error", "it was killed"),
        ("exec /no/such/program\n", "execution_error", "it exited with"),
        ("exit 53\n", "execution_error", "it exited with 53: out of turns"),
    ],
)
async def test_success_requires_exit_code_end_event_and_text(
    script: str, reason: str, said: str, tmp_path: Path, local: SandboxProvider
) -> None:
    adapter = made_agent(tmp_path / "mine", script, more='exit_codes = { 53 = "out of turns" }')
    end = await ended(tmp_path, local, adapter)
    assert (end.finish_reason, said in end.problem) == (reason, True), end
    assert (end.problem == "") == (reason == "success")


async def test_without_last_events_the_exit_code_tells(tmp_path: Path, local: SandboxProvider) -> None:
    assert (
        await ended(tmp_path, local, made_agent(tmp_path / "a", "exit 0\n", ends=False))
    ).finish_reason == "success"


async def test_agent_gets_prompt_model_and_options_only(
    tmp_path: Path, local: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    script = """
    cat >/output/prompt
    env | grep -v '^CODETASTE_COMMAND' | sort >/output/env
    pwd >/output/where; id -u >>/output/where; echo "$HOME" >>/output/where
    touch "$CODETASTE_AGENT/x" 2>/dev/null && echo writable >>/output/where
    true
    """
    toml = PLAIN.replace('"none"', '"openai"') + 'env = { QUIET = "1" }\n'
    toml += '[options]\neffort = { default = "low" }\nfast = { default = false }\n'
    made_agent(tmp_path / "mine", script, ends=False)
    (tmp_path / "mine" / "agent.toml").write_text(f'install = ""\n{toml}')
    adapter = read_adapter(tmp_path / "mine")
    prompt = "Ünïcode $HOME `x` 'y'\n" * 20_000
    found: dict[str, str] = {}

    async def look(box: Sandbox) -> None:
        for name in ("prompt", "env", "where"):
            done = await box.run(["cat", f"/output/{name}"], limits=CommandLimits(output_bytes=10**7))
            found[name] = done.stdout.decode()

    task = AgentTask(prompt, "m-1", "http://127.0.0.1:8787/x", "t-1", {"fast": True})
    end = await ended(tmp_path, local, adapter, task=task, after=look)
    assert end.finish_reason == "success"
    assert found["prompt"] == prompt
    assert found["where"].split() == ["/testbed", "1000", "/home/agent"]
    env = dict(line.split("=", 1) for line in found["env"].splitlines() if "=" in line)
    told = {name: value for name, value in env.items() if name.startswith("CODETASTE_")}
    assert told.pop("CODETASTE_AGENT").startswith("/opt/agents/mine-1-")
    assert told == {
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
    assert "not-a-key" not in found["env"]


async def test_wrong_options_are_a_mistake_of_the_config(tmp_path: Path, local: SandboxProvider) -> None:
    with pytest.raises(ConfigError, match=r"options\.speed: unknown option"):
        await ended(
            tmp_path, local, made_agent(tmp_path / "a", OK), task=AgentTask("x", options={"speed": 1})
        )


async def test_agent_continuing_over_budget_is_ended_after_grace(
    tmp_path: Path, local: SandboxProvider
) -> None:
    script = "trap '' TERM INT HUP; echo hello; while :; do sleep 1; done\n"
    stopped = anyio.Event()
    left = ["?"]

    async def look(box: Sandbox) -> None:
        done = await box.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])
        left[0] = done.stdout.decode()

    async with anyio.create_task_group() as tasks:

        async def refuse() -> None:
            while not (tmp_path / "events").exists() or not (tmp_path / "events").stat().st_size:  # noqa: ASYNC110
                await anyio.sleep(0.05)
            stopped.set()

        tasks.start_soon(refuse)
        end = await ended(
            tmp_path, local, made_agent(tmp_path / "a", script), stopped=stopped, grace_s=0.5, after=look
        )
    assert (end.finish_reason, end.exit_code) == ("budget_exceeded", None)
    assert end.stream_bytes == len("hello\n")
    assert "run.sh" not in left[0]


async def test_agent_ending_after_budget_has_exceeded_it(tmp_path: Path, local: SandboxProvider) -> None:
    stopped = anyio.Event()
    stopped.set()
    end = await ended(tmp_path, local, made_agent(tmp_path / "a", OK), stopped=stopped)
    assert (end.finish_reason, end.exit_code, end.message) == ("budget_exceeded", 0, "all well")


async def test_a_program_is_ended_at_its_time_limit(tmp_path: Path, local: SandboxProvider) -> None:
    end = await ended(tmp_path, local, made_agent(tmp_path / "a", "sleep 1000\n"), wall_s=2.0)
    assert (end.finish_reason, end.exit_code) == ("timeout", None)


async def test_output_flood_is_truncated_and_last_event_is_read(
    tmp_path: Path, local: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming.HeadTailFile.__init__, "__kwdefaults__", {"head": 10_000, "tail": 1000})
    script = 'yes \'{"type": "noise"}\' | head -c 10000000\necho\n' + OK
    end = await ended(tmp_path, local, made_agent(tmp_path / "a", script))
    assert (end.finish_reason, end.message) == ("success", "all well")
    assert end.stream_bytes > 10_000_000
    kept = (tmp_path / "events").read_bytes()
    assert len(kept) < 12_000
    assert b"bytes_left_out" in kept
    assert kept.endswith(b'"all well"}\n')


async def test_a_program_that_writes_without_end_is_ended(
    tmp_path: Path, local: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_STREAM_BYTES", 3_000_000)
    end = await ended(tmp_path, local, made_agent(tmp_path / "a", OK + "yes >&2 & exec yes\n"))
    assert end.finish_reason == "execution_error"
    assert end.problem.startswith("it wrote more than 3000000 bytes of output")
    assert len(end.stderr) <= 4000


async def test_unwritable_output_is_internal_error_and_ends_agent(
    tmp_path: Path, local: SandboxProvider
) -> None:
    adapter = made_agent(tmp_path / "a", "echo x; sleep 1000\n")
    with pytest.raises(StorageFull, match="/dev/full"):
        await ended(tmp_path, local, adapter, events=Path("/dev/full"))


async def test_sandbox_gone_is_a_known_ending(tmp_path: Path, local: SandboxProvider) -> None:
    program = await install_agent(made_agent(tmp_path / "a", "sleep 1000\n"), None, tmp_path / "cache", print)
    async with (
        local.open(SandboxSpec("run", mounts=program.mounts)) as box,
        anyio.create_task_group() as tasks,
    ):

        async def stop() -> None:
            await anyio.sleep(1.0)
            await box.stop()

        tasks.start_soon(stop)
        end = await run_agent(program, box, AgentTask("x"), CommandLimits(), tmp_path / "events")
    assert end.finish_reason == "execution_error"
    assert end.problem


THEIRS = """
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
SETUP = """
mkdir -p "$CODETASTE_TREE/bin"
printf '#!/bin/sh\\necho hi\\n' >"$CODETASTE_TREE/bin/theirs"
chmod +x "$CODETASTE_TREE/bin/theirs"
"""


@pytest.mark.parametrize(
    ("says", "more", "reason", "problem"),
    [
        ("success", "", "success", ""),
        ("error", "", "error", "error"),
        ("success", "exit 9\n", "execution_error", "it exited with 9"),
        ("error_max_budget_usd", "", "budget_exceeded", "it reached its own cost limit"),
    ],
)
async def test_an_agent_of_the_published_harness_runs_as_it_did_there(
    says: str, more: str, reason: str, problem: str, tmp_path: Path, local: SandboxProvider
) -> None:
    adapter = published_agent(tmp_path / "theirs", THEIRS % says + more, SETUP, provider="anthropic")
    found: list[str] = []

    async def look(box: Sandbox) -> None:
        found.append((await box.run(["cat", "/testbed/greeting.txt"])).stdout.decode())

    end = await ended(tmp_path, local, adapter, after=look)
    assert (end.finish_reason, end.problem, end.cost_usd) == (reason, problem, Decimal("0.25"))
    assert found == ["hi\n"]
    last = json.loads((tmp_path / "events").read_text().splitlines()[-1])
    assert last["finish_reason"] == says
    assert "working in /testbed with http://127.0.0.1:8787" in (tmp_path / "events").read_text()


async def test_a_published_agent_that_says_nothing_of_its_end_has_an_unknown_one(
    tmp_path: Path, local: SandboxProvider
) -> None:
    end = await ended(tmp_path, local, published_agent(tmp_path / "theirs", "true\n"))
    assert end.finish_reason == "unknown"
