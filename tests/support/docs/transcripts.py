"""The page of things that go wrong: run each of them on terminals of two sizes, and write what they show.

``python tests/support/docs/transcripts.py`` renews the page; a test compares.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

TESTS = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from support.flows import tiny_benchmark, trial_runs  # noqa: E402
from support.flows.terminal import TerminalOutput, TerminalSize, run_on_terminal  # noqa: E402
from support.flows.tiny_benchmark import Bench, TinyBenchmark, Workspace  # noqa: E402
from support.llm.provider import server as provider  # noqa: E402

PAGE = TESTS.parent / "docs/guide/when-it-goes-wrong.md"
SIZES = (TerminalSize(80, 24), TerminalSize(120, 35))
HEAD = """# When it goes wrong

What a person sees of twelve things that go wrong, on terminals of 80 × 24 and 120 × 35. The transcripts are
made by a test, with a small benchmark and scripted models; times, ports and long paths are replaced.
[Every ending](resume.md#endings-and-exit-codes) has a name, a mark and an exit code.
"""


@dataclass(frozen=True)
class Scenario:
    """Something that goes wrong: how it is prepared, the command, and what to do about it.

    With ``interrupt`` the screen that first has this text is shown, and then Ctrl-C is pressed.
    """

    title: str
    advice: str
    prepare: Callable[[Path, TinyBenchmark, ExitStack], Workspace]
    command: str = "codetaste run config.toml"
    before: tuple[str, ...] = ()
    interrupt: str = ""
    env: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))


def discovery(model: str = "quick", **more: str) -> Callable[[Path, TinyBenchmark, ExitStack], Workspace]:
    def prepare(folder: Path, alpha: TinyBenchmark, _: ExitStack) -> Workspace:
        return alpha.make_workspace(folder, {"m": model}, **more)

    return prepare


def trial(**more: str) -> Callable[[Path, TinyBenchmark, ExitStack], Workspace]:
    def prepare(folder: Path, alpha: TinyBenchmark, _: ExitStack) -> Workspace:
        tracks = (more.get("on", "open/direct"),)
        rest = {name: value for name, value in more.items() if name != "on"}
        return trial_runs.make_trial_workspace(folder, alpha, tracks, **rest)

    return prepare


def refused_key(folder: Path, alpha: TinyBenchmark, stack: ExitStack) -> Workspace:
    server = stack.enter_context(provider.serving())
    error = {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    server.default = provider.status(401, error)
    table = (
        f'provider = "anthropic"\nmodel = "claude-sonnet-5-5"\nbase_url = "{server.url}"\n'
        'api_key_env = "MY_KEY"\nprice = { input = 2, output = 10, cache_read = 0.1 }\n'
    )
    return alpha.make_workspace(folder, {"sonnet": table})


CRASH = """#!/bin/sh
[ "$1" = --version ] && echo 1 && exit
echo "reading the task" >&2
echo "Error: Cannot find module 'yargs'" >&2
exit 3
"""


def crashing_agent(folder: Path, alpha: TinyBenchmark, _: ExitStack) -> Workspace:
    workspace = trial_runs.make_trial_workspace(folder, alpha)
    agent = folder / "my-agent"
    agent.mkdir()
    (agent / "agent.toml").write_text('protocol = "none"\nversions = ["1"]\ndefault = "1"\ninstall = ""\n')
    (agent / "run.sh").write_text(CRASH)
    (agent / "run.sh").chmod(0o755)
    text = workspace.config.read_text()
    workspace.config.write_text(text.replace('harness = "codetaste"', 'harness = "./my-agent"'))
    return workspace


SCRIPTS = '''
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall


def chatty(request: Request) -> Message:
    """Talks, and calls no tool."""
    return Message("assistant", (TextBlock("I would begin by looking at the store module."),))


def uses_tool(request: Request) -> Message:
    """Calls the tool of the user, and finishes."""
    turn = sum(message.role == "assistant" for message in request.messages)
    call = ToolCall("c1", "count_callers", {"name": "fetch_old"})
    if turn:
        call = ToolCall("c2", "finish", {})
    return Message("assistant", (call,))
'''
TOOL = '''
from codetaste.agent.rule_tools import RuleContext
from codetaste.agent.tool import tool


@tool
async def count_callers(context: RuleContext, name: str) -> str:
    """Count the callers of a function.

    Args:
        context: What the tools of a pass work on.
        name: The function.
    """
    return str(len(context.callers[name]))
'''


def own_script(function: str, **more: str) -> Callable[[Path, TinyBenchmark, ExitStack], Workspace]:
    def prepare(folder: Path, alpha: TinyBenchmark, _: ExitStack) -> Workspace:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "models.py").write_text(SCRIPTS)
        (folder / "tool.py").write_text(TOOL)
        table = f'provider = "scripted"\nmodel = "models.py:{function}"\nprice = {tiny_benchmark.PRICE}\n'
        return alpha.make_workspace(folder, {"m": table}, **more)

    return prepare


def damaged_journal(folder: Path, alpha: TinyBenchmark, _: ExitStack) -> Workspace:
    workspace = alpha.make_workspace(folder, {"m": "quick"})
    workspace.out.mkdir(parents=True)
    (workspace.out / "journal.jsonl").write_text(
        '{"event":"journal","format":2}\nhalf a li\n{"event":"drain"}\n'
    )
    return workspace


SCENARIOS = (
    Scenario(
        "A key of the config is misspelt",
        "Nothing was started. All mistakes of a config are reported together.",
        discovery(discover="budget = 1.0"),
    ),
    Scenario(
        "The provider refuses the key",
        "Nothing was bought. Put the right key into the variable that `api_key_env` names, and run again.",
        refused_key,
        env=MappingProxyType({"MY_KEY": "sk-none"}),
    ),
    Scenario(
        "The next call does not fit into the budget",
        "The rules so far are the result. Raise `discover.budget_usd`, and the pass continues.",
        discovery("endless", discover="budget_usd = 0.16"),
        command="codetaste run config.toml --only *additive",
    ),
    Scenario(
        "The maximum of turns is reached",
        "The rules so far are the result. Raise `discover.max_turns`, and the pass continues where it ended.",
        discovery("reply", discover="budget_usd = 1.0\n"),
        command="codetaste run config.toml --set discover.max_turns=2",
    ),
    Scenario(
        "The model calls no tool",
        "It talks instead. The line has its last words; the whole is in `runs/r/transcripts/`.",
        own_script("chatty"),
    ),
    Scenario(
        "A tool of one's own fails",
        "The model was told so and went on. `codetaste status r --job '*additive'` names the log.",
        own_script("uses_tool", discover='tools = ["default", "tool.py:count_callers"]\nbudget_usd = 1.0'),
    ),
    Scenario(
        "An agent's program crashes",
        "The line has its exit code and its last words. The patch is what it had changed by then.",
        crashing_agent,
    ),
    Scenario(
        "A planning agent leaves no plan",
        "Three attempts were made. Without a plan nothing is executed, and the patch is empty.",
        trial(on="open/plan", coder="no_plan"),
    ),
    Scenario(
        "Finished work would be bought again",
        "A key that decides results was changed. On a terminal you are asked; elsewhere `--yes` is needed.",
        discovery(),
        command="codetaste run config.toml --set discover.max_output_tokens=2048",
        before=("codetaste run config.toml",),
    ),
    Scenario(
        "The same in a dry run",
        "It says which key is why, before anything is bought.",
        discovery(),
        command="codetaste run config.toml --set discover.max_output_tokens=2048 --dry-run",
        before=("codetaste run config.toml",),
    ),
    Scenario(
        "The journal is damaged",
        "It says what the run has spent, so nothing is bought before it is repaired.",
        damaged_journal,
    ),
    Scenario(
        "Ctrl-C",
        "First what the run showed while commands were running, then the end. The same command continues.",
        discovery("sleeper"),
        interrupt="(sleep 4321",
    ),
)


def transcripts(scenario: Scenario, alpha: TinyBenchmark, folder: Path, size: TerminalSize) -> list[str]:
    """Return the screens of a scenario at one size: the last one, after the one that was interrupted."""
    with ExitStack() as stack:
        workspace = scenario.prepare(folder, alpha, stack)
        for command in (*scenario.before, scenario.command):
            output = run(command, workspace, size, scenario)
    shown = [output.screens[-1]]
    if scenario.interrupt:
        shown.insert(0, next(screen for screen in output.screens if count(screen, scenario.interrupt) > 1))
    return [clean(screen, folder, alpha) for screen in shown]


def count(screen: list[str], text: str) -> int:
    return sum(text in line for line in screen)


def run(command: str, workspace: Workspace, size: TerminalSize, scenario: Scenario) -> TerminalOutput:
    pressed: list[int] = []

    def interrupt(output: TerminalOutput, pid: int) -> None:
        # Both passes must have started their command.
        if scenario.interrupt and not pressed and count(output.screens[-1], scenario.interrupt) > 1:
            pressed.append(pid)
            os.kill(pid, signal.SIGINT)

    arguments = command.removeprefix("codetaste ").split()
    program = "import sys; from codetaste.cli.app import main; sys.argv[0] = 'codetaste'; main()"
    ours = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    env = {**ours, "XDG_CACHE_HOME": str(workspace.cache), "TERM": "xterm-256color", **scenario.env}
    return run_on_terminal(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        workspace.folder,
        env,
        size=size,
        typed=f"$ {command}\r\n",
        until=interrupt,
    )


def clean(screen: list[str], folder: Path, alpha: TinyBenchmark) -> str:
    """Return the text of a screen without what differs from run to run."""
    text = "\n".join(screen).rstrip()
    text = text.replace(f"{folder}/", "").replace(str(alpha.bench.folder), "…")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:40000", text)
    text = re.sub(r" +-?(\d+h)?(\d+m)?\d+(\.\d+)?s\b", " 1s", text)
    return re.sub(r"(?m) +$", "", text)


def page(alpha: TinyBenchmark, folder: Path) -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_sections(alpha, folder)])


def _sections(alpha: TinyBenchmark, folder: Path) -> Iterator[str]:
    for number, scenario in enumerate(SCENARIOS):
        yield section(scenario, alpha, folder / str(number))


def section(scenario: Scenario, alpha: TinyBenchmark, folder: Path) -> str:
    """Return the part of the page about one scenario."""
    parts = [f"## {scenario.title}\n\n{scenario.advice}\n"]
    for size in SIZES:
        for screen in transcripts(scenario, alpha, folder / f"{size.columns}", size):
            parts.append(f"```text\n{screen}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Renew the page."""
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(Path(temporary, "tiny"))
        bench.add()
        alpha = TinyBenchmark(bench, Path(temporary, "cache"))
        PAGE.write_text(page(alpha, Path(temporary, "work")))


if __name__ == "__main__":
    main()
