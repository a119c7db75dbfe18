"""A tiny benchmark in the published layout, with a real git repository, and workspaces to run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from support.flows.fork_server import ForkedProcess
from support.flows.growing_journal import GrowingJournal

HERE = Path(__file__).parent
MODELS = HERE / "discovery_models.py"
QUICKSTART = HERE.parents[2] / "examples" / "quickstart.toml"
PRICE = "{ input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }"

BASE = {
    "pack/store.py": (
        "class Store(object):\n    def load(self, key):\n        return fetch_old(key)\n\n\n"
        "def fetch_old(key):\n    return {'key': key}\n"
    ),
    "pack/one.py": "from pack.store import fetch_old\n\n\ndef first():\n    return fetch_old('a')\n",
    "pack/two.py": "from pack.store import fetch_old\n\n\ndef second():\n    return fetch_old('b')\n",
    "pack/same.py": "def same():\n    return sorted([3, 1, 2])\n",
    "README.md": "fetch_old is what everything is called\n",
}
GOLDEN = {
    **BASE,
    "pack/store.py": (
        "class Store:\n    def load(self, key):\n        return fetch_new(key, strict=True)\n\n\n"
        "def fetch_new(key, strict):\n    return {'key': key}\n"
    ),
    "pack/one.py": (
        "from pack.store import fetch_new\n\n\ndef first():\n    return fetch_new('a', strict=True)\n"
    ),
    "pack/two.py": (
        "from pack.store import fetch_new\n\n\ndef second():\n    return fetch_new('b', strict=False)\n"
    ),
}
GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "2020-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}


def git(repository: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *args], capture_output=True, check=True, env=GIT_ENVIRONMENT
    )
    return done.stdout.decode().strip()


def commit(repository: Path, files: dict[str, str]) -> str:
    """Commit ``files`` and all changes of the work tree; the same files give the same hash."""
    repository.mkdir(parents=True, exist_ok=True)
    if not (repository / ".git").exists():
        git(repository, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(repository, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Row:
    """A line of instances.csv."""

    repo: str
    base: str
    golden: str

    @property
    def id(self) -> str:
        return f"tiny__{self.repo}-{self.base[:8]}"

    @property
    def path(self) -> str:
        return f"tiny/{self.repo}/{self.base[:8]}"


@dataclass
class Bench:
    """A benchmark folder and the clones it needs."""

    folder: Path
    rows: list[Row] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "bench"

    @property
    def repos(self) -> Path:
        return self.folder / "clones"

    def add(
        self,
        repo: str = "alpha",
        base: dict[str, str] | None = None,
        golden: dict[str, str] | None = None,
        *,
        between: Callable[[Path], None] | None = None,
        swap: bool = False,
    ) -> Row:
        """Add an instance; ``between`` may change the work tree before the base commit."""
        clone = self.repos / "tiny" / repo
        clone.mkdir(parents=True)
        git(clone, "init", "--quiet", "--initial-branch=main")
        if between is not None:
            between(clone)
        # The name is part of the content, so that no two instances share a cached tree.
        name = {"NAME": f"{repo}\n"}
        first = commit(clone, {**name, **(base or BASE)})
        second = commit(clone, golden or GOLDEN)
        row = Row(repo, second, first) if swap else Row(repo, first, second)
        return self.enter(row)

    def enter(
        self, row: Row, description: str | None = "Rename fetch_old to fetch_new, with strict.\n"
    ) -> Row:
        self.rows.append(row)
        self.write()
        if description is not None:
            folder = self.root / "assets/descriptions" / row.path
            folder.mkdir(parents=True, exist_ok=True)
            for file in ("description.md", "open_description.md"):
                (folder / file).write_text(description)
        return row

    def write(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        header = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"
        lines = [f"tiny,{row.repo},{row.base},{row.golden},,rename,python\n" for row in self.rows]
        (self.root / "instances.csv").write_text(header + "".join(lines))


def render_config(
    bench: Bench,
    models: dict[str, str],
    *,
    run: str = "budget_usd = 2.0",
    discover: str = "budget_usd = 1.0",
    more: str = "",
) -> str:
    """A config for scripted ``models`` (id → function in discovery_models.py, or a whole TOML table)."""
    tables = [
        f'id = "{name}"\n'
        + (model if "=" in model else f'provider = "scripted"\nmodel = "{MODELS}:{model}"\nprice = {PRICE}\n')
        for name, model in models.items()
    ]
    listed = json.dumps(list(models))
    return "\n".join(
        [
            f'[run]\nname = "r"\n{run}',
            f'[benchmark]\npath = "{bench.root}"\nrepos = "{bench.repos}"',
            *(f"[[models]]\n{table}" for table in tables),
            f"[discover]\nmodels = {listed}\nmax_turns = 30\nmax_output_tokens = 4096\n{discover}",
            more,
        ]
    )


@dataclass
class Workspace:
    """A working directory for commands, with a config and a cache that workspaces may share."""

    folder: Path
    cache: Path
    config: Path
    name: str = "r"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "runs" / self.name

    def start(self, *args: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start ``python -m codetaste.run CONFIG args`` here, prefixed by ``before`` (such as unshare)."""
        command = ["-m", "codetaste.run", str(self.config), *args]
        if self.config.parent != self.folder:
            command += ["--set", f"run.out={self.folder}/runs"]
        return self._start(command, before)

    def run(self, *args: str, timeout_s: float = 250, before: Sequence[str] = ()) -> CommandResult:
        return wait_for_result(self.start(*args, before=before), timeout_s)

    def start_cli(self, *args: str) -> subprocess.Popen[str]:
        """Start a command of ``codetaste``."""
        return self._start(["-c", "from codetaste.cli.app import main; main()", *args])

    def cli(self, *args: str, timeout_s: float = 250) -> CommandResult:
        """Run a command of ``codetaste``."""
        return wait_for_result(self.start_cli(*args), timeout_s)

    def program(self, *command: str, timeout_s: float = 250) -> CommandResult:
        """Run a command line; "python" is this interpreter."""
        line = [sys.executable if word == "python" else word for word in command]
        return wait_for_result(self._popen(line), timeout_s)

    def _start(self, command: Sequence[str], before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a command of Python: a new one if it has its variables, or a key that /proc is to show."""
        if before or any(name.startswith("PYTHON") or name.endswith("_API_KEY") for name in self.env):
            return self._popen([*before, sys.executable, "-W", "error", *command])
        self.folder.mkdir(parents=True, exist_ok=True)
        return ForkedProcess(command, cwd=self.folder, env=self._variables)

    @property
    def _variables(self) -> dict[str, str]:
        return {**os.environ, "XDG_CACHE_HOME": str(self.cache), **self.env}

    def _popen(self, command: Sequence[str]) -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def journal(self) -> list[dict[str, Any]]:
        return read_journal(self.out)

    def ledger(self, model: str) -> list[dict[str, Any]]:
        path = self.out / "models" / f"{model}.ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def rules(self) -> dict[str, bytes]:
        """Every rule file of the run, by its path below ``discover/``."""
        root = self.out / "discover"
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("rules_*.yml"))}


@dataclass(frozen=True)
class TinyBenchmark:
    """The shared benchmark of one instance, and a cache for its workspaces."""

    bench: Bench
    cache: Path

    @property
    def row(self) -> Row:
        return self.bench.rows[0]

    def key(self, model: str, direction: str) -> str:
        return f"discover/{model}/{self.row.id}/{direction}"

    def make_workspace(self, folder: Path, models: dict[str, str], **more: str) -> Workspace:
        return make_workspace(folder, self.bench, self.cache, models, **more)


def make_workspace(folder: Path, bench: Bench, cache: Path, models: dict[str, str], **more: str) -> Workspace:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(render_config(bench, models, **more))
    return Workspace(folder, cache, config)


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        return {job["key"]: job for job in self.json["jobs"]}


def wait_for_result(process: subprocess.Popen[str], timeout_s: float) -> CommandResult:
    """Wait until a command ends; return its result."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"not finished after {timeout_s} s:\n{out}\n{err}") from None
    return check_output(process.returncode, out, err)


def check_output(code: int, out: str, err: str) -> CommandResult:
    """Return the result of a command, which must not print a traceback or an internal warning."""
    for text in (out, err):
        for never in ("Traceback", "Exception ignored", "ResourceWarning", "ExceptionGroup", "never awaited"):
            assert never not in text, text
    return CommandResult(code, out, err)


def read_journal(out: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a journal that may be growing."""
    path = out / "journal.jsonl"
    raw = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in raw.split(b"\n")[: raw.count(b"\n")]]


STEP_EVENTS = {"reserved", "settled", "effect", "ended"}


def count_steps(lines: list[dict[str, Any]]) -> int:
    """Count the steps of work in a journal; a resume adds none."""
    return sum(line["event"] in STEP_EVENTS for line in lines)


def wait_for_progress(process: subprocess.Popen[str], out: Path, steps: float) -> None:
    """Return when the journal has ``steps`` steps, or the process has ended."""
    deadline, journal = time.monotonic() + 250, GrowingJournal(out / "journal.jsonl")
    while process.poll() is None and count_steps(journal.read()) < steps:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill(process: subprocess.Popen[str]) -> str:
    """Send SIGKILL; return what the process wrote to stderr."""
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate()
    return err


@dataclass
class Accounts:
    """The costs in a journal, computed without code of codetaste."""

    limits: dict[tuple[str, ...], Decimal]
    """US dollars by path prefix; () is the whole run."""
    calls: dict[str, tuple[tuple[str, ...], Decimal, str]] = field(default_factory=dict)
    highest: dict[tuple[str, ...], Decimal] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        match line["event"]:
            case "reserved":
                assert line["call"] not in self.calls
                self.calls[line["call"]] = (tuple(line["path"]), Decimal(line["usd"]), "reserved")
            case "settled":
                path, _, _ = self.calls[line["call"]]
                self.calls[line["call"]] = (path, Decimal(line["usd"]), "settled")
            case "released":
                path, _, _ = self.calls[line["call"]]
                self.calls[line["call"]] = (path, Decimal(0), "released")
            case "unknown":
                path, usd, _ = self.calls[line["call"]]
                self.calls[line["call"]] = (path, Decimal(line.get("usd", usd)), "unknown")
            case _:
                return
        for top, limit in self.limits.items():
            spent = sum((usd for path, usd, _ in self.calls.values() if path[: len(top)] == top), Decimal(0))
            assert spent <= limit, f"{spent} of {limit} at {top}, after {line}"
            self.highest[top] = max(self.highest.get(top, Decimal(0)), spent)

    def total(self, *states: str) -> Decimal:
        return sum((usd for _, usd, state in self.calls.values() if state in states), Decimal(0))


def fold_journal(lines: list[dict[str, Any]], limits: dict[tuple[str, ...], Decimal]) -> Accounts:
    """Fold a journal; fail if the costs exceed a limit at any line."""
    accounts = Accounts(limits)
    for line in lines:
        accounts.take(line)
    return accounts


def assert_no_finished_job_ran_twice(lines: list[dict[str, Any]]) -> None:
    finished: set[str] = set()
    for line in lines:
        if line["event"] == "started":
            assert line["key"] not in finished, f"{line['key']} was run again"
        elif line["event"] == "ended" and line["status"] == "done":
            assert line["key"] not in finished, f"{line['key']} ended twice"
            finished.add(line["key"])


def assert_no_call_billed_twice(ledger: list[dict[str, Any]]) -> None:
    calls = [line["call"].rpartition("#")[0] for line in ledger]
    assert len(calls) == len(set(calls)), sorted(call for call in calls if calls.count(call) > 1)


def descendants(pid: int) -> set[int]:
    """All descendants of the process ``pid``, in any session."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def leftover_processes(marker: str) -> Iterator[str]:
    """Command lines of processes with ``marker`` (such as the test's folder) in them or in their cwd."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command_line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                cwd = str((entry / "cwd").readlink())
            except OSError:
                continue
            if marker in command_line or marker in cwd:
                yield command_line
