"""Run the OpenGrep engine on given files: one process per call, limited in time, memory and output.

Flags and meaning are those of the published harness. The files are passed by name; ``scan/targets.py``
selects them. The engine does not inherit our environment or home, and its output goes to files in a
private folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio import CancelScope, CapacityLimiter

from codetaste.core.concurrency import gather
from codetaste.core.files import stale_folders
from codetaste.core.processes import kill_process_group
from codetaste.errors import EngineError
from codetaste.rules.engine.bisect import FailedAttempt, bisect_failure
from codetaste.rules.engine.output import RULE_ALIAS, UnreadableOutput, parse_output
from codetaste.rules.scan.model import ScanProblemKind, ScanResult, merge_scans
from codetaste.sandbox.containment.lifetime import make_guard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.rules.engine.install import RuleEngine
    from codetaste.rules.rule import Rule


DEFAULT_PROCESSES = 2
REAP_S = 10.0
_LEAST_EXTRA_S = 20.0
_ARGUMENT_BYTES = 1024**2 if sys.platform == "linux" else 192 * 1024
_FOLDER_PREFIX = "codetaste-scan-"
_STALE_S = 3600.0
"""Younger scratch folders are left alone: their process may be in another PID namespace."""
_FLAGS = ("--no-rewrite-rule-ids", "--timeout-threshold", "0", "--max-memory", "0", "--disable-version-check")
_CORE_FLAGS = ("--experimental", "--project-root", ".", "--x-ignore-semgrepignore-files")


@dataclass(frozen=True, slots=True)
class RuleEngineLimits:
    """Limits of one call of the engine.

    Attributes:
        wall_s: wall time of a scan; finding what hung may take the same time again, at least 20 seconds.
        start_s: with ``file_s``, a lower limit of scans of few files, such as those that a patch changed.
        file_s: by how much each file raises that limit.
        pair_s: the engine's own limit for one rule on one file, used only after a scan has timed out.
        memory_bytes: address space of a process (Linux).
        output_bytes: size of each file that it writes (Linux).
    """

    wall_s: float = 900.0
    start_s: float = 90.0
    file_s: float = 2.0
    pair_s: float = 10.0
    memory_bytes: int = 8 * 1024**3
    output_bytes: int = 1024**3


class OpenGrep:
    """The engine; ``match`` may be called concurrently."""

    def __init__(
        self,
        engine: RuleEngine,
        *,
        limits: RuleEngineLimits | None = None,
        processes: CapacityLimiter | None = None,
        scratch: Path | None = None,
    ) -> None:
        """Prepare the engine; no process is started.

        Args:
            engine: from ``find_rule_engine``.
            limits: limits of one call.
            processes: limiter of concurrent engine processes, shared between engines; default 2.
            scratch: parent of the private folders; default the system's temporary folder.
        """
        self.engine = engine
        self._limits = limits or RuleEngineLimits()
        self._processes = processes or CapacityLimiter(DEFAULT_PROCESSES)
        # An even share of the cores for each process.
        self._jobs = max(1, (os.cpu_count() or 1) // int(min(self._processes.total_tokens, 1024)))
        self._scratch = scratch

    async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        """Match ``rules``, whose ids are unique, against ``files`` of ``tree``.

        The engine parses the rules even if there are no files.

        Raises:
            EngineError: the engine cannot be run at all, or the disk is full.
        """
        if not rules:
            return ScanResult(())
        return merge_scans(
            await gather([partial(self._match_chunk, rules, tree, part) for part in _chunks(files)])
        )

    async def _match_chunk(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        # One process for all attempts: the time limits do not include the wait for other scans.
        async with self._processes:
            return await self._match_with_retries(rules, tree, files)

    async def _match_with_retries(
        self, rules: Sequence[Rule], tree: Path, files: Sequence[str]
    ) -> ScanResult:
        limits = self._limits
        wall_s = min(limits.wall_s, limits.start_s + limits.file_s * len(files))
        answer = await self._attempt(tree, 0.0, rules, files, wall_s)
        left_s = wall_s
        if isinstance(answer, FailedAttempt) and answer.kind is ScanProblemKind.TIMEOUT and files:
            # The engine's own time limit, off before, finds all rules that hang in one scan.
            pair_s = min(limits.pair_s, wall_s / 8)
            second = await self._attempt(tree, pair_s, rules, files, wall_s / 2)
            answer, left_s = (second if isinstance(second, ScanResult) else answer), wall_s / 2
        if isinstance(answer, FailedAttempt):
            return await bisect_failure(
                partial(self._attempt, tree, 0.0), rules, files, answer, extra_s=max(left_s, _LEAST_EXTRA_S)
            )
        return answer

    async def _attempt(
        self, tree: Path, pair_s: float, rules: Sequence[Rule], files: Sequence[str], wall_s: float
    ) -> ScanResult | FailedAttempt:
        try:
            folder = await anyio.to_thread.run_sync(self._prepare, rules)
            try:
                return await self._run(tree, pair_s, rules, files, wall_s, folder)
            finally:
                with CancelScope(shield=True):
                    await anyio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
        except OSError as error:
            raise EngineError(f"the rule engine cannot be run: {error.strerror or error}") from None

    def _prepare(self, rules: Sequence[Rule]) -> Path:
        folder = make_scratch_folder(self._scratch)
        bodies = [{**rule.body, "id": RULE_ALIAS.format(number)} for number, rule in enumerate(rules)]
        (folder / "nothing").mkdir()
        # JSON is YAML that every YAML parser reads the same way.
        (folder / "rules.json").write_text(json.dumps({"rules": bodies}, ensure_ascii=False), "utf-8")
        return folder

    async def _run(
        self,
        tree: Path,
        pair_s: float,
        rules: Sequence[Rule],
        files: Sequence[str],
        wall_s: float,
        folder: Path,
    ) -> ScanResult | FailedAttempt:
        command, env = self._command(folder, files, pair_s)
        if not os.access(self.engine.program, os.X_OK):
            raise EngineError(f"the rule engine cannot be run: {self.engine.program} is not there")
        # The engine's own time limits are off, so it would run forever if this process were killed.
        guard = make_guard()
        try:
            with (folder / "out.sarif").open("wb") as out, (folder / "errors").open("wb") as errors:
                process = await anyio.open_process(
                    guard.wrap(tuple(command)),
                    cwd=tree if files else folder / "nothing",
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    pass_fds=(guard.read_fd,),
                    start_new_session=True,
                )
            try:
                self._bound(process.pid)
                with anyio.move_on_after(wall_s) as scope:
                    await process.wait()
            finally:
                await kill_process_group(process, REAP_S)
        finally:
            guard.close()
        if scope.cancelled_caught:
            return FailedAttempt(ScanProblemKind.TIMEOUT, f"no answer in {wall_s:.1f} s")
        return await anyio.to_thread.run_sync(_read, folder, process.returncode, rules, files)

    def _command(self, folder: Path, files: Sequence[str], pair_s: float) -> tuple[list[str], dict[str, str]]:
        special = _CORE_FLAGS if self.engine.is_core else ()
        command = [str(self.engine.program), "scan", *special, *_FLAGS]
        command += ["--timeout", f"{pair_s:g}", "--jobs", str(self._jobs)]
        command += ["--config", str(folder / "rules.json"), "--sarif"]
        command += ["--json-output", str(folder / "out.json"), "--", *(files or ["."])]
        env = {"LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}
        if not self.engine.is_core:  # a bundle unpacks itself into a cache and needs a home
            env |= {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}
            home = Path(os.environ.get("HOME", ""))
            cache = (home if home.is_absolute() else folder) / ".cache"
            env["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(cache)
        return command, env

    def _bound(self, pid: int) -> None:
        """Set resource limits of the new process; it needs a tenth of a second to parse its rules first."""
        if sys.platform != "linux":
            return
        import resource  # noqa: PLC0415  (not on every platform)

        bounds = {
            resource.RLIMIT_AS: self._limits.memory_bytes,
            resource.RLIMIT_FSIZE: self._limits.output_bytes,
            resource.RLIMIT_CORE: 0,
        }
        for which, amount in bounds.items():
            try:
                resource.prlimit(pid, which, (amount, amount))
            except (OSError, ValueError):  # it has ended, or a lower limit is set
                continue


def _chunks(files: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ``files`` into chunks that fit on a command line; yields one empty chunk if there are none."""
    start, size = 0, 0
    for number, path in enumerate(files):
        cost = len(os.fsencode(path)) + 1 + 8
        if size + cost > _ARGUMENT_BYTES and number > start:
            yield files[start:number]
            start, size = number, 0
        size += cost
    yield files[start:]


def _read(
    folder: Path, returncode: int | None, rules: Sequence[Rule], files: Sequence[str]
) -> ScanResult | FailedAttempt:
    complaint = (folder / "errors").read_bytes()[-65536:].decode("utf-8", "replace")
    if "No space left on device" in complaint:
        raise EngineError(f"no space left in {folder.parent} for the rule engine's output; free some")
    report = folder / "out.json"
    ids = {RULE_ALIAS.format(number): rule.id for number, rule in enumerate(rules)}
    try:
        return parse_output(
            (folder / "out.sarif").read_bytes(),
            report.read_bytes() if report.exists() else b"",
            ids,
            frozenset(files),
        )
    except UnreadableOutput as error:
        if error.rules_refused:
            return FailedAttempt(ScanProblemKind.RULE, str(error))
        return FailedAttempt(ScanProblemKind.ENGINE, f"the engine {_exit_description(returncode)}: {error}")


def _exit_description(returncode: int | None) -> str:
    if returncode is None or returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def make_scratch_folder(parent: Path | None) -> Path:
    """Make a folder below ``parent``, by default the system's temporary folder."""
    folder = Path(parent or tempfile.gettempdir())
    _sweep(folder)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-", dir=folder))


@lru_cache(maxsize=8)
def _sweep(folder: Path) -> None:
    """Remove folders of ended processes from ``folder``, once per process."""
    for left in stale_folders(folder, _FOLDER_PREFIX, _STALE_S):
        shutil.rmtree(left, ignore_errors=True)
