"""A JDK from Debian's archive, unpacked into the cache: for hosts whose own JDKs are too old.

apt fetches the packages and verifies their signatures; nothing is installed, no privileges are needed. The
JDK is that of Debian's unstable suite, with the C library that it was built for, so it runs on older hosts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from codetaste.core.files import locked, remove_tree
from codetaste.core.text import one_line
from codetaste.errors import ToolMissing
from codetaste.java.jdk import INSTALLED_FOLDER, Jdk, read_jdk

FEATURE = 25
"""The feature release that is installed."""

_NAME = f"openjdk-{FEATURE}"
_SUITE = "sid"
_PACKAGES = (
    *(f"{_NAME}-{part}-headless" for part in ("jdk", "jre")),
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g"),
)
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 1800.0
_PROGRAMS = ("java", "javac", "jar", "javap", "jcmd")
_TREE = "tree"
# The host's C library may be older than the one that the JDK needs: its own loader starts it.
_SCRIPT = """#!/bin/sh
tree=$(dirname "$(readlink -f "$0")")/../{tree}
exec "$tree/{loader}" --library-path "$tree/{libraries}:$tree/{home}/lib:$tree/{home}/lib/server" \\
    "$tree/{home}/bin/{program}" "$@"
"""
_OTHERWISE = "install a JDK of release {} or newer, and name it in JAVA_HOME if it is not found"


async def install_jdk(cache: Path) -> Jdk:
    """Return the JDK of the cache folder, and fetch it if it is missing; it takes 0.4 GB of network.

    Raises:
        ToolMissing: it cannot be had on this host; the message says why and what to do.
    """
    home = cache / INSTALLED_FOLDER / _NAME
    async with locked(home.with_name(f".{_NAME}.lock"), ToolMissing):
        if found := await read_jdk(home):
            return found
        site = await _debian_site()
        work = Path(await to_thread.run_sync(partial(tempfile.mkdtemp, prefix=".work-", dir=home.parent)))
        try:
            await _fetch(site, work)
            ready = await to_thread.run_sync(_unpack, work)
            await to_thread.run_sync(remove_tree, home)
            await to_thread.run_sync(ready.rename, home)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, work)
        found = await read_jdk(home)
    if found is None:
        raise ToolMissing(f"the JDK in {home} does not run here; {_OTHERWISE.format(FEATURE)}")
    return found


async def _debian_site() -> str:
    """Return the address of the Debian archive that this host uses."""
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing or not await anyio.Path(_KEYRING).exists():
        what = ", ".join([*missing, *([] if missing else [str(_KEYRING)])])
        raise ToolMissing(f"a JDK can be fetched on Debian only ({what} is missing); {_hint()}")
    listed = await _run(["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(SITE)"], Path("/"))
    sites = [
        site
        for origin, _, site in (line.partition("\t") for line in listed.splitlines())
        if origin == "Debian"
    ]
    if not sites:
        raise ToolMissing(f"apt knows no archive of Debian (run apt-get update); {_hint()}")
    return max(set(sites), key=sites.count)


def _hint() -> str:
    return _OTHERWISE.format(FEATURE)


async def _fetch(site: str, work: Path) -> None:
    """Fetch the packages into ``work/packages``, with a state of apt of its own."""
    for name in ("lists/partial", "cache/archives/partial", "packages", _TREE):
        await anyio.Path(work / name).mkdir(parents=True)
    (work / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {site} {_SUITE} main\n")
    (work / "status").touch()
    settings = {
        "Dir::Etc::SourceList": work / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
    await _run([*apt, "update"], work)
    await _run([*apt, "download", *_PACKAGES], work / "packages")
    for package in sorted((work / "packages").glob("*.deb")):
        await _run(["dpkg-deb", "-x", str(package), str(work / _TREE)], work)


async def _run(command: list[str], folder: Path) -> str:
    try:
        with anyio.fail_after(_TIMEOUT_S):
            done = await anyio.run_process(
                command,
                cwd=folder,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
            )
    except (OSError, TimeoutError) as error:
        raise ToolMissing(f"{command[0]} failed: {one_line(error) or 'no end'}; {_hint()}") from error
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise ToolMissing(f"{command[0]} ended with {done.returncode}: {one_line(last)}; {_hint()}")
    return done.stdout.decode(errors="replace")


def _unpack(work: Path) -> Path:
    """Make the folder of the JDK of the unpacked packages: ``tree`` with all files, ``bin`` with scripts."""
    ready, tree = work / "ready", work / _TREE
    home = next((tree / "usr/lib/jvm").glob(f"java-{FEATURE}-openjdk-*"))
    loader = next(tree.glob("usr/lib/*/ld-linux-*.so.*"), None) or next(tree.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = next(tree.glob("usr/lib/*/libc.so.6")).parent
    for link in [path for path in home.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute():  # such as into /etc/java-25-openjdk
            own = os.path.relpath(tree / target.relative_to("/"), link.parent)
            link.unlink()
            link.symlink_to(own)
    (ready / "bin").mkdir(parents=True)
    for program in _PROGRAMS:
        script = _SCRIPT.format(
            tree=_TREE,
            loader=loader.relative_to(tree),
            libraries=libraries.relative_to(tree),
            home=home.relative_to(tree),
            program=program,
        )
        (ready / "bin" / program).write_text(script)
        (ready / "bin" / program).chmod(0o755)
    tree.rename(ready / _TREE)
    return ready
