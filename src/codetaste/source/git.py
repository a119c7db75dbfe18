"""Run ``git`` on untrusted repositories: without user configuration, hooks, filters or prompts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import anyio

from codetaste.core.processes import kill_process_group
from codetaste.errors import SourceError, StorageFull, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from anyio.abc import ByteReceiveStream

_PASSED_VARIABLES = (
    *("PATH", "TMPDIR", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
)
_PROTOCOLS = "file:git:http:https:ssh"
_SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.symlinks=true",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "credential.helper=",
    "protocol.ext.allow=never",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # "git log" would run the clone's gpg.program, and write in an encoding of the clone's.
    "log.showSignature=false",
    "i18n.logOutputEncoding=UTF-8",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
)
_ERROR_BYTES = 16 * 1024
_DISK_FULL_MESSAGES = ("No space left on device", "Out of diskspace", "Disk quota exceeded")
"""Error texts for a full disk; the second one appears when git wrote only part of the data."""
NO_GIT = "git is needed to read repositories and is not on PATH: install it (apt-get install git)"


@dataclass(frozen=True, slots=True)
class GitResult:
    """Exit code and output of a git command."""

    exit_code: int
    output: bytes
    stderr: str

    @property
    def ok(self) -> bool:
        """True when the command succeeded."""
        return self.exit_code == 0


def git_command(args: Sequence[str], git_dir: Path | None = None) -> list[str]:
    """Return the command line for ``git args``, with every setting turned off that could run a program."""
    settings = [item for setting in _SETTINGS for item in ("-c", setting)]
    where = [] if git_dir is None else [f"--git-dir={git_dir}"]
    return ["git", "--no-pager", *where, *settings, *args]


def git_environment(*, network: bool = False) -> dict[str, str]:
    """Return git's environment; without ``network`` every protocol is off, also for a partial clone."""
    environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    environment.setdefault("PATH", os.defpath)
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=20")
    return environment | {
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": "/nonexistent",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS if network else "none",
    }


async def run_git(
    *args: str,
    git_dir: Path | None = None,
    network: bool = False,
    timeout_s: float = 120.0,
    output_bytes: int = 256 * 1024**2,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    env: Mapping[str, str] | None = None,
) -> GitResult:
    """Run git to its end; git and its children are killed when this returns or is cancelled.

    Args:
        args: the git command and its arguments.
        git_dir: the repository; git does not search for another one.
        network: allow git to fetch.
        timeout_s: wall-clock limit, seconds.
        output_bytes: limit of standard output.
        stdin: an open file that git reads.
        env: variables in addition to ``git_environment``.

    Raises:
        ToolMissing: git is not installed.
        SourceError: the timeout or the output limit was exceeded.
        StorageFull: git ran out of disk space.
    """
    what = f"git {args[0]}"
    try:
        with anyio.fail_after(timeout_s):
            environment = {**git_environment(network=network), **(env or {})}
            result = await _run(git_command(args, git_dir), environment, output_bytes, stdin)
    except FileNotFoundError:
        raise ToolMissing(NO_GIT) from None
    except TimeoutError:
        raise SourceError(f"{what} took more than {timeout_s:g} s; try again, or use a local clone") from None
    if result is None:
        raise SourceError(f"{what} wrote more than {output_bytes:,} bytes; the repository is too large")
    if not result.ok and any(words in result.stderr for words in _DISK_FULL_MESSAGES):
        raise StorageFull(f"{what}: no space left on the device; free some, or name another cache folder")
    return result


async def _run(
    command: list[str], environment: dict[str, str], output_bytes: int, stdin: IO[bytes] | int
) -> GitResult | None:
    process = await anyio.open_process(command, stdin=stdin, env=environment, cwd="/", start_new_session=True)
    output, complaint = bytearray(), bytearray()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_collect, process.stdout, output, output_bytes)
            tasks.start_soon(_collect, process.stderr, complaint, _ERROR_BYTES)
        exit_code = await process.wait()
    finally:
        await kill_process_group(process, 5.0)
    if len(output) > output_bytes:
        return None
    return GitResult(exit_code, bytes(output), complaint.decode("utf-8", "replace"))


async def _collect(stream: ByteReceiveStream | None, into: bytearray, bound: int) -> None:
    """Read ``stream`` to its end; store little more than ``bound`` bytes."""
    if stream is None:
        return
    async for chunk in stream:
        if len(into) <= bound:
            into += chunk
