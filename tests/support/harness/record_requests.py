"""What each supported release of each program sends, for each model that it knows: the table of a page.

``python record_requests.py CACHE PAGE`` runs a session of each, without a budget, so that nothing is
refused, and rewrites the tables in the page. Run it when a release is added to an ``agent.toml``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import anyio

from codetaste.harness.adapter import adapter_names, load_adapter
from codetaste.harness.install.store import InstalledAgent
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.sandbox.base import CommandLimits, SandboxProvider, SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from support.harness.agent_job import install_by_name, run_with_gateway
from support.harness.coding_models import DONE
from support.harness.coding_provider import make_loopback_model, plan_with_picture, serve_plan
from support.llm.allow_list_keys import keys_of_request
from support.llm.provider.server import serving

UNKNOWN_MODEL = "some-model"
_NAMES = {
    "claude-code": rb"[\"'`](claude-(?:opus|sonnet|haiku|fable|mythos)-\d+(?:-\d{1,2})?)[\"'`]",
    "codex": rb"(gpt-5(?:\.\d)?(?:-codex)?(?:-max|-mini)?)(?![\w.-])",
}
"""Names of models in the file of a program."""
_BEGIN, _END = "<!-- recorded -->", "<!-- end -->"


async def known_models(agent: InstalledAgent, provider: SandboxProvider) -> list[str]:
    """Return the models that a program knows, and one that it does not; those without special tools last."""
    if agent.adapter.name == "codex":
        async with provider.open(SandboxSpec("models", mounts=agent.mounts)) as sandbox:
            env = {"CODETASTE_AGENT": agent.mount_path, "HOME": "/tmp"}
            command = [*agent.command, "debug", "models"]
            done = await sandbox.run(command, limits=CommandLimits(wall_s=60, output_bytes=1 << 24), env=env)
        if done.exit_code == 0:
            return [*(model["slug"] for model in json.loads(done.stdout)["models"]), UNKNOWN_MODEL]
    pattern = _NAMES.get(agent.adapter.name)
    if pattern is None:
        return ["qwen3-coder-plus", UNKNOWN_MODEL]
    files = [
        path
        for path in agent.tree.rglob("*")
        if path.name in {"claude", "cli.js", "codex"} and path.is_file()
    ]
    found = {name.decode() for path in files for name in re.findall(pattern, path.read_bytes())}
    return [*sorted(found, key=_age, reverse=True), UNKNOWN_MODEL]


def _age(name: str) -> tuple[list[int], str]:
    return [int(digits) for digits in re.findall(r"\d+", name)], name


class SessionKeys(NamedTuple):
    """The keys of the allow list that the requests of a session use, and those that a budget refuses."""

    used: set[str]
    refused: set[str]


async def record_session(
    agent: InstalledAgent, model: str, provider: SandboxProvider, folder: Path
) -> SessionKeys:
    """Run a session without a budget."""
    allowed = ALLOW_LISTS[agent.adapter.manifest.protocol]
    with serving() as server:
        server.default = serve_plan(plan_with_picture)
        gateway_model = make_loopback_model(agent, server.url, folder, model)
        run = await run_with_gateway(folder, provider, agent, gateway_model, usd=None, wall_s=300.0)
    assert (run.result.finish_reason, run.result.message) == ("success", DONE), (agent.id, model, run.result)
    used: set[str] = set()
    refused: set[str] = set()
    for body, headers, path in zip(server.bodies, server.headers, server.paths, strict=True):
        used |= keys_of_request(allowed, body, headers, path.partition("?")[2])
        refused |= {*allowed.check_request(body, headers, {}).keys}
    return SessionKeys(used, refused)


async def record(cache: Path, names: Iterable[str]) -> str:
    """Return a table for each agent: the keys of its requests, by release."""
    pages = []
    for name in names:
        manifest = load_adapter(name, Path()).manifest
        seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        models: dict[str, list[str]] = {}
        for version in manifest.versions:
            agent = await install_by_name(f"{name}@{version}", cache)
            with TemporaryDirectory() as scratch:
                provider = bubblewrap_provider(Path(scratch) / "sandboxes")
                models[version] = await known_models(agent, provider)
                for model in models[version]:
                    folder = Path(scratch) / model
                    folder.mkdir()
                    used, refused = await record_session(agent, model, provider, folder)
                    sys.stderr.write(f"{name} {version} {model} {' '.join(sorted(refused))}\n")
                    for key in {*used, *(f"{each} (refused)" for each in refused)}:
                        seen[key][version].add(model)
        pages.append(_table(name, models, seen))
    return "\n".join(pages)


def _table(name: str, models: dict[str, list[str]], seen: dict[str, dict[str, set[str]]]) -> str:
    versions = [*models]
    lines = [f"## {name}", ""]
    lines += ["| release | models |", "| --- | --- |"]
    lines += [f"| {version} | {', '.join(models[version])} |" for version in versions]
    lines += ["", f"| sent | {' | '.join(versions)} |", f"| --- |{' --- |' * len(versions)}"]
    rows: dict[str, list[str]] = {}
    for key in sorted(seen):
        cells = [_cell(seen[key][version], len(models[version])) for version in versions]
        if not any(key.startswith(outer) and cells == rows[outer] for outer in rows):
            rows[key] = cells
    lines += [f"| `{key}` | {' | '.join(cells)} |" for key, cells in rows.items()]
    return "\n".join([*lines, ""])


def _cell(found: set[str], number: int) -> str:
    return "all" if len(found) == number else f"{len(found)} of {number}" if found else ""


def replace_tables(page: str, tables: str, date: str) -> str:
    """Return a page with other tables between its marks."""
    head, _, rest = page.partition(_BEGIN)
    return f"{head}{_BEGIN}\n\nRecorded on {date}.\n\n{tables}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    cache, page = Path(sys.argv[1]), Path(sys.argv[2])
    tables = anyio.run(record, cache, sys.argv[3:] or adapter_names())
    page.write_text(replace_tables(page.read_text(), tables, datetime.now(UTC).date().isoformat()))
