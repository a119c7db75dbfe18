"""``codetaste java``: list the JDKs and the pinned jars on this machine, and install what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from cyclopts import App

from codetaste.cli.options import AsJson
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.java.artifacts.artifact_set import artifact_set_names, load_artifact_set
from codetaste.java.artifacts.store import install_artifacts, is_installed, jars_folder
from codetaste.java.jdk import find_jdks
from codetaste.java.jdk_package import install_jdk
from codetaste.refactorings.service import MINIMUM_JAVA

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.java.artifacts.artifact_set import ArtifactSet

_MB = 1_000_000

java = App(name="java")


@java.default
@command
async def list_java(*, json_: AsJson = False) -> int:
    """List the JDKs of this machine, and the sets of jars with whether they are installed.

    Args:
        json_: Print the result as JSON.
    """
    cache = await to_thread.run_sync(cache_dir, notify)
    jdks = await find_jdks(cache=cache)
    wanted = [load_artifact_set(name) for name in artifact_set_names()]
    sets = [await to_thread.run_sync(_set_to_json, each, cache) for each in wanted]
    if json_:
        found = [{**asdict(each), "home": str(each.home)} for each in jdks]
        print_result(json_document({"jdks": found, "jars": sets}))
        return 0
    for each in jdks:
        print_result(f"JDK {each.version}: {each.home}{'' if each.compiler else ' (no compiler)'}")
    if not jdks:
        print_result("no JDK")
    for row in sets:
        state = "installed" if row["installed"] else "not installed"
        print_result(f"{row['name']}: {row['jars']} jars, {row['bytes'] // _MB} MB, {state}")
    return 0


@java.command(usage="Usage: codetaste java install [OPTIONS] [NAMES...]")
@command
async def install(*names: str, json_: AsJson = False) -> int:
    """Fetch pinned jars from the Maven repository that this host uses, and a JDK if none is new enough.

    Args:
        names: Sets of jars; default all.
        json_: Print the result as JSON.

    Raises:
        ConfigError: there is no set of that name.
        SourceError: a jar cannot be fetched, or is not the pinned one.
        ToolMissing: no JDK is new enough, and none can be fetched on this host.
        StorageFull: no space left.
    """
    cache = await to_thread.run_sync(cache_dir, notify)
    wanted = [load_artifact_set(name) for name in names or artifact_set_names()]
    for each in wanted:
        await install_artifacts(each, cache)
        if not json_:
            print_result(f"{each.name}: {len(each.artifacts)} jars in {jars_folder(cache)}")
    minimum = max(_minimum_java(each.name) for each in wanted)
    if not any(jdk.feature >= minimum and jdk.compiler for jdk in await find_jdks(cache=cache)):
        notify(f"no JDK of release {minimum} or newer: fetching one from Debian's archive (0.4 GB)")
        jdk = await install_jdk(cache)
        if not json_:
            print_result(f"JDK {jdk.version}: {jdk.home}")
    if json_:
        print_result(json_document({"installed": [_set_to_json(each, cache) for each in wanted]}))
    return 0


def _minimum_java(name: str) -> int:
    """Return the release of Java that the jars of the set ``name`` need."""
    versions = {f"refactoring-miner-{version}": feature for version, feature in MINIMUM_JAVA.items()}
    return versions.get(name, min(MINIMUM_JAVA.values()))


def _set_to_json(each: ArtifactSet, cache: Path) -> dict[str, Any]:
    return {
        "name": each.name,
        "jars": len(each.artifacts),
        "bytes": each.size,
        "installed": is_installed(each, cache),
    }
