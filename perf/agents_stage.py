"""Where agents are measured: a made-up repository of any size, a command-line agent of a few lines, a config.

Nothing is fetched: the agent is a Node program that asks its model in streams, does as it is told, and waits
most of the time, as real ones do.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from repositories import git

if TYPE_CHECKING:
    from pathlib import Path

OWN, PROGRAM, MUTE = "codetaste", "agent", "mute"
"""Our own loop; the program that asks its model; one that asks nobody and only edits a file."""
FILES_OF_FOLDER = 100
_LINES = 120
"""Of a file: 5 KB, so that 10,000 files make a tree as large as aws-cli's."""
_NAME, _GOLDEN = "base", "golden"

_MANIFEST = """\
protocol = "%s"
versions = ["1"]
default = "1"
install = ""

[[end_events]]
when = { type = "end" }
outcome = "success"
message = "said"
"""
_VERSION = '#!/bin/sh\nif [ "${1-}" = --version ]; then echo version 1; exit; fi\n'
_RUN = _VERSION + 'exec /opt/codetaste/node/bin/node "$(dirname "$0")/work.mjs"\n'
MUTE_EDIT = "echo '# edited' >>pack0/module0.py; echo 'new = 1' >pack0/new.py"
"""What is timed bare as well."""
_MUTE_RUN = f'{_VERSION}set -e\n{MUTE_EDIT}\necho \'{{"type": "end", "said": "done"}}\'\n'
_WORK = """\
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const env = process.env;
const tools = [{ name: "bash", description: "a shell", input_schema: { type: "object", properties: {
  command: { type: "string" } }, required: ["command"] } }];
const messages = [{ role: "user", content: readFileSync(0, "utf8") }];

async function asked() {
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
  const content = await asked();
  messages.push({ role: "assistant", content });
  const calls = content.filter((block) => block.type === "tool_use");
  if (!calls.length) break;
  messages.push({ role: "user", content: calls.map((call) => {
    const done = spawnSync("sh", ["-c", call.input.command], { encoding: "utf8" });
    return { type: "tool_result", tool_use_id: call.id, content: `${done.stdout}${done.stderr}` || "ok" };
  }) });
}
console.log(JSON.stringify({ type: "end", said: "done" }));
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
max = {slots}
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
class Stage:
    """A folder with a benchmark of one instance, agents, and a cache; configs and runs are made in it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What commands here start with."""
        return {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}

    @property
    def clone(self) -> Path:
        """The repository, its base checked out."""
        return self.folder / "clones" / "made" / "up"

    def config(
        self, harness: str, engine: str, socket: Path | None, script: str, count: int, slots: int
    ) -> Path:
        """Write a config of ``count`` trials, ``slots`` at once, in a new run directory's place."""
        place = self.folder / "places" / str(len(list((self.folder / "places").glob("*"))))
        place.mkdir(parents=True)
        for name in ("bench", "clones", PROGRAM, MUTE):
            (place / name).symlink_to(self.folder / name)
        text = _CONFIG.format(
            engine=engine,
            socket=f'socket = "{socket}"' if socket and engine != "bubblewrap" else "",
            slots=slots,
            script=json.dumps(script),
            harness=harness if harness == OWN else f"./{harness}",
            count=count,
        )
        (place / "config.toml").write_text(text)
        return place / "config.toml"


def make_stage(folder: Path, files: int) -> Stage:
    """Make a repository of ``files`` files and all that is needed beside it."""
    stage = Stage(folder)
    for at in range(files):
        path = stage.clone / f"pack{at // FILES_OF_FOLDER}" / f"module{at}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"value_{at}_{line} = {at * line}  # a line\n" for line in range(_LINES)))
    git(stage.clone, "init", "--quiet", "--initial-branch=main")
    base = _commit(stage.clone)
    (stage.clone / "pack0" / "module0.py").write_text("value = 0\n")
    golden = _commit(stage.clone)
    git(stage.clone, "checkout", "--quiet", base)
    about = folder / "bench" / "assets" / "descriptions" / "made" / "up" / base[:8]
    about.mkdir(parents=True)
    for name in ("description.md", "open_description.md"):
        (about / name).write_text("Make the code better.\n")
    header = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"
    (folder / "bench" / "instances.csv").write_text(f"{header}made,up,{base},{golden},,rename,python\n")
    _agent(folder / PROGRAM, "anthropic", {"run.sh": _RUN, "work.mjs": _WORK})
    _agent(folder / MUTE, "none", {"run.sh": _MUTE_RUN})
    return stage


def _agent(folder: Path, protocol: str, scripts: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in {"agent.toml": _MANIFEST % protocol, **scripts}.items():
        (folder / name).write_text(text)


def _commit(clone: Path) -> str:
    git(clone, "add", "--all")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "x")
    return git(clone, "rev-parse", "HEAD").decode().strip()
