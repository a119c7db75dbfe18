"""Set-up for measuring agents: a made-up repository of any size, small command-line agents, and configs.

Nothing is downloaded. One agent is a Node program that calls its model in streams, runs the commands of the
replies, and waits most of the time, as real agents do.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from repositories import git

if TYPE_CHECKING:
    from pathlib import Path

OWN, PROGRAM, EDITOR = "codetaste", "agent", "editor"
"""Our own loop; the program that calls its model; a program without a model that only edits files."""
FILES_PER_FOLDER = 100
_LINES = 120
"""Lines of a file: 5 KB, so that 10,000 files make a tree as large as that of aws-cli."""
_NAME, _GOLDEN = "base", "golden"

_MANIFEST = """\
protocol = "%s"
versions = ["1"]
default = "1"
install = ""

[[end_events]]
when = { type = "end" }
outcome = "success"
message = "text"
"""
_VERSION = '#!/bin/sh\nif [ "${1-}" = --version ]; then echo version 1; exit; fi\n'
_RUN = _VERSION + 'exec /opt/codetaste/node/bin/node "$(dirname "$0")/work.mjs"\n'
EDIT = "echo '# edited' >>pack0/module0.py; echo 'new = 1' >pack0/new.py"
"""The script of ``EDITOR``, which is also timed without a sandbox."""
_EDITOR_RUN = f'{_VERSION}set -e\n{EDIT}\necho \'{{"type": "end", "text": "done"}}\'\n'
_WORK = """\
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const env = process.env;
const tools = [{ name: "bash", description: "a shell", input_schema: { type: "object", properties: {
  command: { type: "string" } }, required: ["command"] } }];
const messages = [{ role: "user", content: readFileSync(0, "utf8") }];

async function callModel() {
  const answer = await fetch(`${env.CODETASTE_BASE_URL}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": env.CODETASTE_TOKEN, "content-type": "application/json" },
    body: JSON.stringify({ model: env.CODETASTE_MODEL, max_tokens: 1024, stream: true, tools, messages }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  const blocks = [];
  let rest = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\\n");
    rest = lines.pop();
    for (const line of lines.filter((each) => each.startsWith("data: "))) {
      const event = JSON.parse(line.slice(6));
      const block = blocks[event.index];
      if (event.type === "error") throw new Error(line);
      if (event.type === "content_block_start")
        blocks[event.index] = { ...event.content_block, input_json: "" };
      if (event.delta?.type === "text_delta") block.text += event.delta.text;
      if (event.delta?.type === "input_json_delta") block.input_json += event.delta.partial_json;
    }
  }
  return blocks.map(({ input_json, ...block }) =>
    block.type === "tool_use" ? { ...block, input: JSON.parse(input_json || "{}") } : block);
}

for (;;) {
  const content = await callModel();
  messages.push({ role: "assistant", content });
  const calls = content.filter((block) => block.type === "tool_use");
  if (!calls.length) break;
  messages.push({ role: "user", content: calls.map((call) => {
    const done = spawnSync("sh", ["-c", call.input.command], { encoding: "utf8" });
    return { type: "tool_result", tool_use_id: call.id, content: `${done.stdout}${done.stderr}` || "ok" };
  }) });
}
console.log(JSON.stringify({ type: "end", text: "done" }));
"""
_CONFIG = """\
[run]
name = "r"
budget_usd = 1000.0
concurrency = 1000

[benchmark]
path = "bench"
repos = "clones"

[sandbox]
engine = "{engine}"
max = {sandboxes}
{socket}

[[models]]
id = "m"
provider = "scripted"
model = {script}
max_concurrency = 1000
price = {{ input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }}

[[agents]]
id = "a"
harness = "{harness}"
model = "m"
budget_usd = 10.0
time_limit = "30m"

[[tracks]]
track = "open"
attempts = {count}
"""


@dataclass(frozen=True, slots=True)
class Setup:
    """A folder with a benchmark of one instance, agents, a cache, configs and runs."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands in this folder."""
        return {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}

    @property
    def clone(self) -> Path:
        """The repository, with its base checked out."""
        return self.folder / "clones" / "made" / "up"

    def config(
        self, harness: str, engine: str, socket: Path | None, script: str, count: int, sandboxes: int
    ) -> Path:
        """Write a config of ``count`` trials, ``sandboxes`` at once, in a new folder."""
        folder = self.folder / "configs" / str(len(list((self.folder / "configs").glob("*"))))
        folder.mkdir(parents=True)
        for name in ("bench", "clones", PROGRAM, EDITOR):
            (folder / name).symlink_to(self.folder / name)
        text = _CONFIG.format(
            engine=engine,
            socket=f'socket = "{socket}"' if socket and engine != "bubblewrap" else "",
            sandboxes=sandboxes,
            script=json.dumps(script),
            harness=harness if harness == OWN else f"./{harness}",
            count=count,
        )
        (folder / "config.toml").write_text(text)
        return folder / "config.toml"


def make_setup(folder: Path, files: int) -> Setup:
    """Make a repository of ``files`` files, the benchmark and the agents."""
    setup = Setup(folder)
    for number in range(files):
        path = setup.clone / f"pack{number // FILES_PER_FOLDER}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"value_{number}_{line} = {number * line}  # a line\n" for line in range(_LINES))
        )
    git(setup.clone, "init", "--quiet", "--initial-branch=main")
    base = _commit(setup.clone)
    (setup.clone / "pack0" / "module0.py").write_text("value = 0\n")
    golden = _commit(setup.clone)
    git(setup.clone, "checkout", "--quiet", base)
    descriptions = folder / "bench" / "assets" / "descriptions" / "made" / "up" / base[:8]
    descriptions.mkdir(parents=True)
    for name in ("description.md", "open_description.md"):
        (descriptions / name).write_text("Make the code better.\n")
    header = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"
    (folder / "bench" / "instances.csv").write_text(f"{header}made,up,{base},{golden},,rename,python\n")
    _agent(folder / PROGRAM, "anthropic", {"run.sh": _RUN, "work.mjs": _WORK})
    _agent(folder / EDITOR, "none", {"run.sh": _EDITOR_RUN})
    return setup


def _agent(folder: Path, protocol: str, scripts: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in {"agent.toml": _MANIFEST % protocol, **scripts}.items():
        (folder / name).write_text(text)


def _commit(clone: Path) -> str:
    git(clone, "add", "--all")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "x")
    return git(clone, "rev-parse", "HEAD").decode().strip()
