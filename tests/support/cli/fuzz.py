"""Give mutated input files to every command: python fuzz.py FOLDER SEED COUNT [SUFFIX …] prints a JSON line.

``FOLDER`` is a working directory with configs, their runs, and ``bench/``, the benchmark. Each input is one
file of it, with one of the suffixes if there are some, mutated by a generator with its own seed. A forked
process runs the command, with limits of time and memory.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from codetaste.cli.app import main

MAX_S, MAX_BYTES = 30, 1024**3
EXIT_CODES = {0, 1, 2}
PATCH = "runs/r/outputs/pseudo_agents/direct/tiny/alpha/05216a1c/golden_agent/prediction.diff"
READING = (
    ("run", "config.toml", "--dry-run"),
    ("status", "r"),
    ("status", "r", "--json"),
    ("status", "p"),
    ("status", "p", "--all", "--job", "*"),
    ("limit", "p", "--budget-usd", "3"),
    ("settle", "p"),
    ("report", "runs/p"),
    ("run", "replay.toml", "--dry-run"),
    ("limit", "r"),
    ("settle", "r"),
    ("report", "runs/r"),
    ("report", "runs/r", "--json"),
    ("import", "runs/r/outputs", "--name", "imported"),
    ("benchmark", "list", "--benchmark", "bench"),
    ("benchmark", "show", "*", "--benchmark", "bench"),
    ("agents", "list"),
)
"""Commands that start no program and change no file but those of an import."""
INSTANCES = (
    ("swe-refactor", "review", "pure.json", "--summary"),
    ("swe-refactor", "review", "pure.json", "--summary", "--json"),
    ("swe-refactor", "check", "pure.json"),
    ("swe-refactor", "list", "pure.json"),
    ("swe-refactor", "show", "pure.json", "0"),
    ("swe-refactor", "examples", "nowhere", "--to", "examples.jsonl", "--instances", "pure.json"),
    ("swe-refactor", "sample", "pure.json", "--size", "2", "--mix", "file"),
    ("swe-refactor", "report", "trials", "--sample", "pure.json", "--instances", "pure.json"),
)
"""Commands that read instances of SWE-Refactor, and what people decided about them."""
TRIALS = (
    ("swe-refactor", "report", "trials"),
    ("swe-refactor", "report", "trials", "--table", "all", "--json"),
)
"""Commands that read trials of SWE-Refactor."""
RESUMING = (("run", "config.toml"), ("run", "replay.toml"))
"""Commands that resume a run: one that has finished, one that was interrupted. They use what Python files,
cassettes and ledgers have."""
SCANNING = (
    *RESUMING,
    ("evaluate", "--benchmark", "bench", "--repos", "clones", "--instance", "*", "--patch", PATCH),
    ("rules", "check", "--benchmark", "bench", "--repos", "clones"),
)
"""Commands that start git and the rule engine."""
SCANNING_SHARE = 0.05
"""They take seconds."""
RESUMING_SHARE = 0.5
"""The share of resumed runs among the commands for files that others do not read."""
_MODULES = (
    "codetaste.run.execute",
    "codetaste.run.__main__",
    *(
        f"codetaste.cli.commands.{name}"
        for name in ("report", "import_", "benchmark", "installation.agents", "evaluate", "rules")
    ),
    *(f"codetaste.cli.commands.runs.{name}" for name in ("status", "limit", "settle")),
    *(
        f"codetaste.cli.commands.swe_refactor.{name}"
        for name in ("review", "check", "list", "show", "examples", "report", "sample")
    ),
)
_WORDS = (
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 400,
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"true",
    b"[1]",
    b"\0",
    b"\x1b[2J",
    b"\xff\xfe",
)
_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    10**40,
    float("nan"),
    float("inf"),
    "",
    "\0",
    "\ud800",
    [],
    [1],
    {},
    {"a": []},
    "x" * 10**5,
)


def mutate(rng: random.Random, content: bytes) -> bytes:
    """Return ``content`` with one mutation: of its JSON, of its lines, or of its bytes."""
    kind = rng.randrange(8)
    lines = content.splitlines(keepends=True)
    if kind <= 2 and lines:
        at = rng.randrange(len(lines))
        try:
            data = json.loads(content) if kind == 0 else json.loads(lines[at])
        except (ValueError, RecursionError):
            pass
        else:
            text = json.dumps(_mutate_json(rng, data)).encode()
            return text if kind == 0 else b"".join([*lines[:at], text, b"\n", *lines[at + 1 :]])
    if kind <= 4 and lines:
        at = rng.randrange(len(lines))
        return b"".join(rng.choice(([*lines[:at], *lines[at + 1 :]], [*lines, lines[at]], lines[:at])))
    at = rng.randrange(len(content) + 1)
    if kind == 5:
        return content[:at]
    if kind == 6:
        deep = rng.choice((b"[", b'{"a":', b"- ", b"\n", b"**/", b"*a")) * rng.choice((10, 1_000, 30_000))
        return rng.choice((content[:at] + deep + content[at:], deep))
    word = rng.choice((*_WORDS, bytes([rng.randrange(256)])))
    return content[:at] + word + content[at + rng.choice((0, 1, len(word))) :]


def mutate_records(rng: random.Random, content: bytes) -> bytes:
    """Return JSON lines with one edit that leaves every line valid: lines moved or lost, or other values."""
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content
    first, second = sorted(rng.sample(range(len(lines)), 2))
    match rng.randrange(6):
        case 0:
            return b"".join([*lines[:first], *lines[second:]])
        case 1:
            return b"".join([*lines[: second + 1], *lines[first:]])
        case 2:
            lines[first], lines[second] = lines[second], lines[first]
        case 3:  # all lines of one kind
            kind = _kind(lines[first])
            lines = [line for line in lines if _kind(line) != kind]
        case 4:
            numbers = list(re.finditer(rb"(?<=[:,\[\"])\d+(\.\d+)?(?=[,\"\]}])", lines[first]))
            if numbers:
                found = rng.choice(numbers)
                number = rng.choice((b"0", b"1", b"7", b"0.000001", b"12345678", b"999999999999"))
                lines[first] = lines[first][: found.start()] + number + lines[first][found.end() :]
        case _:  # a value of another line of its kind
            alike = [line for line in lines if _kind(line) == _kind(lines[first])]
            one, other = json.loads(lines[first]), json.loads(rng.choice(alike))
            key = rng.choice(sorted(one))
            lines[first] = json.dumps({**one, key: other.get(key)}, separators=(",", ":")).encode() + b"\n"
    return b"".join(lines)


def _kind(line: bytes) -> object:
    data = json.loads(line)
    return data.get("event", sorted(data))


def _mutate_json(rng: random.Random, data: object) -> object:
    if isinstance(data, dict) and data and rng.random() < 0.9:
        key = rng.choice(sorted(data))
        if rng.random() < 0.15:
            return {name: value for name, value in data.items() if name != key}
        return {**data, key: _mutate_json(rng, data[key])}
    if isinstance(data, list) and data and rng.random() < 0.8:
        at = rng.randrange(len(data))
        return [*data[:at], _mutate_json(rng, data[at]), *data[at + 1 :]]
    return rng.choice(_VALUES)


def replace(rng: random.Random, path: Path, content: bytes) -> str:
    """Mutate the file; return how, for the report."""
    if rng.random() > 0.06:
        if path.suffix == ".jsonl" and rng.random() < 0.6:
            path.write_bytes(mutate_records(rng, content))
            return "records"
        path.write_bytes(mutate(rng, content))
        return "content"
    path.unlink()
    special: dict[str, Callable[[], object]] = {
        "missing": lambda: None,
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
        "loop": lambda: path.symlink_to(path),
    }
    name = rng.choice(sorted(special))
    special[name]()
    return name


def run(args: tuple[str, ...], log: Path) -> tuple[int, float, int]:
    """Run a command in a child.

    Returns its exit code (negative: the signal that ended it), its seconds, and the peak memory in bytes of
    the largest process.
    """
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            if args not in SCANNING:  # the rule engine reserves more addresses than it uses
                resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
            signal.alarm(MAX_S)
            sys.argv = ["codetaste", *args]
            main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except BaseException:  # noqa: BLE001 - it is shown as the interpreter would
            sys.excepthook(*sys.exc_info())
            code = 98
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun, usage.ru_maxrss * 1024


def contents(folder: Path) -> dict[Path, bytes]:
    """Return what every regular file holds that is an input or the work of a finished run."""
    skipped = {"cache", "imported", ".lock", "logs", "log", "hooks", "objects", "__pycache__"}
    return {
        path: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and skipped.isdisjoint(path.relative_to(folder).parts)
    }


def is_lost(path: Path, was: bytes, *, resumed: bool) -> bool:
    """Tell whether a command lost a file; one that resumes a run may add to it and make it anew."""
    if not path.is_file() or path.is_symlink():
        return True
    if not resumed:
        return path.name != "lock" and path.stat().st_size != len(was)  # it has the number of the process
    return (
        path.suffix == ".jsonl"
        and path.parent.name in {"r", "p", "models"}
        and not path.read_bytes().startswith(was)
    )


def restore(folder: Path, before: dict[Path, bytes]) -> None:
    """Make every file what it was, and remove those that are new."""
    for path in (path for path in contents(folder) if path not in before):
        path.unlink()
    for path, was in before.items():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        if path.is_symlink() or not path.is_file() or path.read_bytes() != was:
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(was)
    shutil.rmtree(folder / "runs" / "imported", ignore_errors=True)


def choose_command(rng: random.Random, path: Path) -> tuple[str, ...]:
    """Return a command that may read ``path``."""
    if path.name.startswith("pure."):
        return rng.choice(INSTANCES)
    if path.name == "trials.jsonl":
        return rng.choice(TRIALS)
    if path.suffix in {".py", ".jsonl"} and rng.random() < RESUMING_SHARE:
        return rng.choice(RESUMING)
    return rng.choice(SCANNING if rng.random() < SCANNING_SHARE else READING)


def main_loop(folder: Path, seed: int, count: int, suffixes: frozenset[str]) -> None:
    """Fuzz ``count`` inputs; print the faults as one JSON line."""
    os.chdir(folder)
    before = contents(folder)
    kinds: dict[tuple[str, ...], list[Path]] = {}
    for path in before:
        if suffixes and (path.suffix not in suffixes or "clones" in path.parts):
            continue
        kinds.setdefault(
            (path.parent.name if path.suffix == "" else "", path.suffix, path.name[:8]), []
        ).append(path)
    faults = []
    slowest, largest = 0.0, 0
    log = folder.parent / f"log-{seed}"
    for number in range(seed, seed + count):
        rng = random.Random(number)
        path = rng.choice(kinds[rng.choice(sorted(kinds))])
        args = choose_command(rng, path)
        how = replace(rng, path, before[path])
        code, seconds, size = run(args, log)
        slowest, largest = max(slowest, seconds), max(largest, size)
        text = log.read_text("utf-8", "replace")
        lost = [
            str(each.relative_to(folder))
            for each, was in before.items()
            if each != path and is_lost(each, was, resumed=args in SCANNING)
        ]
        if path.is_symlink() or path.is_fifo():
            path.unlink()
        restore(folder, before)
        if code not in EXIT_CODES or "Traceback" in text or lost or size > MAX_BYTES:
            faults.append(
                [number, str(path.relative_to(folder)), how, args, code, round(seconds, 1), lost, text[-600:]]
            )
    report = {
        "inputs": count,
        "slowest_s": round(slowest, 1),
        "largest_mb": largest // 10**6,
        "faults": faults,
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # a file mutated within a second would be taken from there
    for name in _MODULES:
        import_module(name)
    main_loop(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), frozenset(sys.argv[4:]))
