"""``codetaste agents``: list the command-line agents and their installed releases, and install them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from cyclopts import App

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError
from codetaste.harness.adapter import adapter_names, load_adapter
from codetaste.harness.install.build import install_agent
from codetaste.harness.install.files import tree_bytes
from codetaste.harness.install.store import is_installed, planned_install

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.harness.adapter import Adapter
    from codetaste.harness.install.store import InstalledAgent

_MB = 1_000_000


agents = App(name="agents")


@agents.default
@command
def list_agents(*, json_: AsJson = False) -> int:
    """List the command-line agents that a config can name, their releases and options.

    Args:
        json_: Print the result as JSON.
    """
    cache = cache_dir(notify)
    data = [_agent_to_json(load_adapter(name, Path()), cache) for name in adapter_names()]
    print_result(json_document({"agents": data}) if json_ else "\n".join(_agent_lines(data)))
    return 0


@agents.command(usage="Usage: codetaste agents install [OPTIONS] [NAMES...]")
@command
async def install(*names: str, json_: AsJson = False) -> int:
    """Install agents now; a run installs missing agents itself.

    Args:
        names: NAME or NAME@VERSION, or the folder of your own agent; default all, in their default releases.
        json_: Print the result as JSON.

    Raises:
        ConfigError: one line for each name that does not exist.
        ToolMissing: an agent cannot be installed.
    """
    cache = await to_thread.run_sync(cache_dir, notify)
    releases = await to_thread.run_sync(_releases, names)
    trees: list[InstalledAgent] = []
    for adapter, version in releases:
        trees.append(await install_agent(adapter, version, cache, notify))
        if not json_:
            print_result(f"{trees[-1].adapter.name} {trees[-1].version}: {trees[-1].tree}")
    if json_:
        data = [{"name": each.adapter.name, **_release_to_json(each)} for each in trees]
        print_result(json_document({"installed": data}))
    return 0


def _releases(names: Sequence[str]) -> list[tuple[Adapter, str | None]]:
    """Return the adapter and version of each name; a path may contain an @, a version no slash."""
    releases: list[tuple[Adapter, str | None]] = []
    problems: list[str] = []
    for text in names or adapter_names():
        name, at, version = text.rpartition("@")
        if not at or "/" in version:
            name, version = text, ""
        try:
            adapter = load_adapter(name, Path())
            adapter.choose_version(version or None)
        except ConfigError as error:
            problems.extend(error.problems)
            continue
        releases.append((adapter, version or None))
    if problems:
        raise ConfigError(*problems)
    return releases


def _agent_to_json(adapter: Adapter, cache: Path) -> dict[str, Any]:
    manifest = adapter.manifest
    return {
        "name": adapter.name,
        "about": manifest.about,
        "protocol": adapter.protocol,
        "default": manifest.default,
        "versions": [
            _release_to_json(planned_install(adapter, version, cache)) for version in manifest.versions
        ],
        "options": {
            name: {"default": option.default, "choices": list(option.choices), "about": option.about}
            for name, option in manifest.options.items()
        },
    }


def _release_to_json(release: InstalledAgent) -> dict[str, Any]:
    found = is_installed(release)
    data = {"version": release.version, "id": release.id, "installed": found}
    return {**data, "tree": str(release.tree), "bytes": tree_bytes(release.tree)} if found else data


def _agent_lines(agents: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for agent in agents:
        lines.append(f"{agent['name']}: {agent['about']} ({agent['protocol']})")
        for release in agent["versions"]:
            marks = ["default"] if release["version"] == agent["default"] else []
            marks.append(
                f"installed, {release['bytes'] // _MB} MB" if release["installed"] else "not installed"
            )
            lines.append(f"  {release['version']}: {', '.join(marks)}")
        for name, option in agent["options"].items():
            choices = f" ({', '.join(map(str, option['choices']))})" if option["choices"] else ""
            about = f": {option['about']}" if option["about"] else ""
            lines.append(f"  option {name} = {json.dumps(option['default'])}{choices}{about}")
    return lines
