"""The package registries that the tools of this host use: their hosts, and settings for containers.

Nothing here knows a registry. pip, npm, go, cargo, Maven and apt are asked, or the configuration that they
read, so that a container uses the mirrors of the host. Credentials are never passed on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import anyio
import tomli
from anyio import to_thread

from codetaste.core.concurrency import gather
from codetaste.core.text import one_line, shorten
from codetaste.errors import CodetasteError, SourceError
from codetaste.java.artifacts.repository import read_maven_configuration
from codetaste.sandbox.base import CommandLimits
from codetaste.sandbox.proxy.rules import is_public_address
from codetaste.sandbox.proxy.upstream import HostProxies
from codetaste.source.download import make_download_client, pip_setting
from codetaste.source.sdist import fetch_project_page, index_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from codetaste.sandbox.base import Sandbox

_ASK_S = 60.0
_MESSAGE_CHARS = 200
_QUOTED = re.compile(r"^'([^']+)'", re.MULTILINE)
_USERINFO = re.compile(r"//[^/\s]*@")
_CRATE = '[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nitoa = "1"\n'
_SOURCE_KEYS = ("registry", "replace-with")
_WEB_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """The registry of one tool.

    Attributes:
        tool: "pip", "npm", "go", "cargo", "maven" or "apt".
        hosts: entries of an allow list (``sandbox/proxy/rules.py``).
        variables: for a container, so that the tool in it uses the same registry.
        files: for a container: content by path below HOME.
        problem: why the registry is unknown, "" if it is known.
    """

    tool: str
    hosts: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Registries:
    """The registries of this host's tools."""

    tools: tuple[ToolRegistry, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the entries of an allow list that opens all of them."""
        return tuple(sorted({host for tool in self.tools for host in tool.hosts}))

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the variables of a container that uses the same registries."""
        return {name: value for tool in self.tools for name, value in tool.variables.items()}

    @property
    def files(self) -> Mapping[str, str]:
        """Return the files of such a container: content by path below HOME."""
        return {name: content for tool in self.tools for name, content in tool.files.items()}

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why registries are unknown, one line for each."""
        return tuple(tool.problem for tool in self.tools if tool.problem)


class _Unknown(CodetasteError):
    """A tool did not tell its registry."""


async def find_registries(environ: Mapping[str, str] | None = None) -> Registries:
    """Ask the tools of this host for their registries. A tool that is missing or fails has a ``problem``.

    Takes some seconds: some tools know where packages are only after asking their registry. For pip the
    environment of this process counts.

    Args:
        environ: in which the tools run, by default that of this process.
    """
    environment = dict(os.environ if environ is None else environ)
    asks = [partial(_ask, tool, ask, environment) for tool, ask in _TOOLS.items()]
    return Registries(tuple(await gather(asks)))


async def _ask(
    tool: str, ask: Callable[[Mapping[str, str]], Awaitable[ToolRegistry]], environ: Mapping[str, str]
) -> ToolRegistry:
    try:
        with anyio.fail_after(_ASK_S):
            return await ask(environ)
    except TimeoutError:
        reason = f"no answer within {_ASK_S:g} s"
    except (CodetasteError, OSError, ValueError, LookupError) as error:
        reason = shorten(one_line(error), _MESSAGE_CHARS)
    return ToolRegistry(tool, problem=f"the registry of {tool} is unknown: {reason}")


async def _ask_pip(environ: Mapping[str, str]) -> ToolRegistry:
    index = await to_thread.run_sync(index_url)
    more = (await to_thread.run_sync(pip_setting, "extra-index-url")).split()
    async with await to_thread.run_sync(make_download_client) as http:
        page = await fetch_project_page(http, "pip")
    indexes = [index, *more]
    variables = {"PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
    if more:
        variables |= {"PIP_EXTRA_INDEX_URL": " ".join(more), "UV_INDEX": " ".join(more)}
    hosts = await _hosts(environ, [*indexes, *(found.url for found in page.packages)])
    return ToolRegistry("pip", hosts, _without_secrets(variables))


async def _ask_npm(environ: Mapping[str, str]) -> ToolRegistry:
    registry = await _run(environ, "npm", "config", "get", "registry")
    tarball = await _run(environ, "npm", "view", "npm", "dist.tarball")
    variables = _without_secrets({"NPM_CONFIG_REGISTRY": registry})
    return ToolRegistry("npm", await _hosts(environ, [registry, tarball]), variables)


async def _ask_go(environ: Mapping[str, str]) -> ToolRegistry:
    answer = json.loads(await _run(environ, "go", "env", "-json", "GOPROXY", "GOSUMDB"))
    proxies = [part for part in re.split(r"[,|]", answer["GOPROXY"]) if part not in {"direct", "off", ""}]
    # "NAME+KEY URL", or only a name; "off" for none.
    sums = [part for part in answer["GOSUMDB"].split()[-1:] if part != "off"]
    urls = [part if "://" in part else f"https://{part.partition('+')[0]}" for part in (*proxies, *sums)]
    return ToolRegistry("go", await _hosts(environ, urls), _without_secrets(answer))


async def _ask_cargo(environ: Mapping[str, str]) -> ToolRegistry:
    home = Path(environ.get("CARGO_HOME") or Path(_home(environ), ".cargo"))
    with tempfile.TemporaryDirectory(prefix="codetaste-cargo-", ignore_cleanup_errors=True) as scratch:
        config = await to_thread.run_sync(_write_crate, Path(scratch), home)
        # Its index, and in it where crates are, are in its cache afterwards.
        asking = {**environ, "CARGO_HOME": f"{scratch}/home"}
        await _run(asking, "cargo", "generate-lockfile", "--manifest-path", f"{scratch}/Cargo.toml")
        urls = await to_thread.run_sync(_cached_indexes, Path(scratch, "home"))
    if not urls:
        raise _Unknown("cargo left no index in its cache")
    files = {".cargo/config.toml": config} if config else {}
    return ToolRegistry("cargo", await _hosts(environ, urls), files=files)


def _write_crate(scratch: Path, home: Path) -> str:
    """Write a crate that needs another one; return the user's source replacements as TOML, "" for none."""
    (scratch / "src").mkdir()
    (scratch / "home").mkdir()
    (scratch / "src" / "lib.rs").touch()
    (scratch / "Cargo.toml").write_text(_CRATE)
    path = next((home / name for name in ("config.toml", "config") if (home / name).is_file()), None)
    if path is None:
        return ""
    sources = tomli.loads(path.read_text("utf-8")).get("source", {})
    config = "".join(
        # A JSON string is a TOML string.
        f"[source.{json.dumps(name)}]\n"
        + "".join(f"{key} = {json.dumps(source[key])}\n" for key in _SOURCE_KEYS if key in source)
        for name, source in sources.items()
        if not _USERINFO.search(str(source))
    )
    (scratch / "home" / "config.toml").write_text(config)
    return config


def _cached_indexes(home: Path) -> list[str]:
    urls = []
    for config in home.glob("registry/index/*/config.*"):
        content = json.loads(config.read_bytes())
        # The folder is named after the host, with a hash behind it.
        urls.append(f"https://{config.parent.name.rpartition('-')[0]}")
        urls += [content[key] for key in ("dl", "api") if content.get(key)]
    return urls


async def _ask_maven(environ: Mapping[str, str]) -> ToolRegistry:
    configuration = await to_thread.run_sync(read_maven_configuration, environ)
    mirrors = configuration.mirrors
    if not mirrors:
        return ToolRegistry("maven", await _hosts(environ, configuration.defaults))
    entries = "".join(
        f"<mirror><id>mirror{number}</id><mirrorOf>{escape(of)}</mirrorOf><url>{escape(url)}</url></mirror>"
        for number, (of, url) in enumerate(mirrors)
        if not _USERINFO.search(url)
    )
    files = {".m2/settings.xml": f"<settings><mirrors>{entries}</mirrors></settings>\n"}
    return ToolRegistry("maven", await _hosts(environ, [url for _, url in mirrors]), files=files)


async def _ask_apt(environ: Mapping[str, str]) -> ToolRegistry:
    return ToolRegistry("apt", await archive_hosts(await _run(environ, *_APT_ADDRESSES), environ))


async def sandbox_archives(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the allow-list entries of the archives that apt in a sandbox uses; () without apt.

    Raises:
        SandboxError: the sandbox is gone, or without privileges.
        SourceError: an archive is not reached by http(s).
    """
    done = await sandbox.run(_APT_ADDRESSES, limits=CommandLimits(wall_s=_ASK_S), workdir="/", root=True)
    if done.exit_code != 0:
        return ()
    return await archive_hosts(done.stdout.decode(errors="replace"), os.environ)


# It prints what apt would download, in quotes, one file a line.
_APT_ADDRESSES = ("apt-get", "update", "--print-uris")


async def allow_entries(urls: Iterable[str], environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the entries of an allow list that opens the hosts of ``urls``.

    Raises:
        SourceError: one is no http(s) address.
    """
    return await _hosts(os.environ if environ is None else environ, urls)


async def archive_hosts(output: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the allow-list entries of the archives that apt names in ``output``, in quotes.

    Raises:
        SourceError: one is not reached by http(s).
    """
    return await _hosts(environ, _QUOTED.findall(output))


async def _hosts(environ: Mapping[str, str], urls: Iterable[str]) -> tuple[str, ...]:
    proxies = HostProxies.from_environment(environ)
    return tuple(sorted([await _allow_entry(*base, proxies) for base in {_base(url) for url in urls}]))


def _base(url: str) -> tuple[str, str, int]:
    parts = urllib.parse.urlsplit(url.removeprefix("sparse+"))
    if parts.scheme not in _WEB_PORTS or not parts.hostname:
        raise SourceError(f"{shorten(_USERINFO.sub('//', url), _MESSAGE_CHARS)!r} is not an http(s) address")
    return parts.scheme, parts.hostname, parts.port or _WEB_PORTS[parts.scheme]


async def _allow_entry(scheme: str, host: str, port: int, proxies: HostProxies) -> str:
    """Return the entry for a host; one in a private network is allowed, because the user chose it."""
    entry = f"[{host}]" if ":" in host else host
    if port != _WEB_PORTS[scheme]:
        entry += f":{port}"
    if proxies.proxy_for(host, tunnel=scheme == "https"):
        return entry
    look_up = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        found = await to_thread.run_sync(look_up, abandon_on_cancel=True)
    except OSError:
        return entry
    public = any(is_public_address(str(address[0])) for *_, address in found)
    return entry if public else f"{entry}=private"


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or "/"


def _find_program(environ: Mapping[str, str], name: str) -> str:
    """Return a program on PATH, or where its installer puts it."""
    path = os.pathsep.join([environ.get("PATH", ""), "/usr/local/go/bin", f"{_home(environ)}/.cargo/bin"])
    program = shutil.which(name, path=path)
    if program is None:
        raise _Unknown(f"{name} is not installed on this host")
    return program


async def _run(environ: Mapping[str, str], name: str, *arguments: str) -> str:
    """Return the standard output of a program, run in a folder without settings of a project."""
    program = await to_thread.run_sync(_find_program, environ, name)
    done = await anyio.run_process(
        [program, *arguments], cwd="/", env=dict(environ), check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise _Unknown(f"{name} {arguments[0]} ended with {done.returncode}: {last[0]}")
    return done.stdout.decode(errors="replace").strip()


def _without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value and not _USERINFO.search(value)}


_TOOLS: Mapping[str, Callable[[Mapping[str, str]], Awaitable[ToolRegistry]]] = {
    "pip": _ask_pip,
    "npm": _ask_npm,
    "go": _ask_go,
    "cargo": _ask_cargo,
    "maven": _ask_maven,
    "apt": _ask_apt,
}
