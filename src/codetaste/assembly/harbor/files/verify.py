"""Verify a submission: its reward is the share of the rules that it follows if the tests pass, else 0.

It runs as root in the verifier's own container, which has R in /testbed and no file of the agent but the
patch. Rules are scanned in a copy that only root can read, before the tests run: these run as the owner of
/testbed, who cannot get other rights, and what they leave running is killed before the reward is written.
Without a reward, as when the engine fails on R, the trial is an error and not a 0.

Standard library of Python 3.9 only: it runs in the images of projects.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

TESTBED, TESTS, SCRIPTS = Path("/testbed"), Path("/tests"), Path("/scripts")
SUBMISSION = Path("/logs/artifacts/submission.diff")
LOGS = Path("/logs/verifier")
ENGINE, ENGINE_CACHE = "/opt/opengrep/opengrep", "/opt/opengrep/cache"
ENGINE_FLAGS = (
    *("--no-rewrite-rule-ids", "--timeout-threshold", "0", "--timeout", "0", "--max-memory", "0"),
    *("--disable-version-check", "--sarif"),
)
PARSE_ERRORS = {"syntaxerror", "lexicalerror", "othersyntaxerror", "astbuildererror", "partialparsing"}
SCAN_S, GIT_S = 1800.0, 300.0
ENDED_LATE = (124, 137)
_NO_NEW_PRIVILEGES = 38
_MAX_COUNT = 10**9


class VerifierError(Exception):
    """The reward cannot be told."""


class ScanError(VerifierError):
    """The rule engine did not scan all of a tree."""


class Scan(NamedTuple):
    """The paths that each rule matches, and those that the engine cannot parse."""

    matches: dict[str, set[str]]
    unparsed: set[str]


def main() -> int:
    """Write the reward of the submission; return the exit code."""
    expected = json.loads((TESTS / "expected.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="verify-") as scratch:
        try:
            details = verify(expected, Path(scratch))
        except VerifierError as error:
            sys.stderr.write(f"no reward: {error}\n")
            return 1
    write_rewards(details)
    return 0


def verify(expected: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Return the reward, and what it is made of."""
    try:
        submission = SUBMISSION.read_bytes()
    except OSError as error:
        raise VerifierError(f"there is no submission: {error}") from error
    tree = copy_base(scratch)
    details: dict[str, Any] = {"reward": 0.0, "unmet": []}
    if submission.strip():
        done = git(tree, "apply", "--index", "--whitespace=nowarn", "-", stdin=submission)
        if done.returncode:
            return {**details, "applies": 0, "note": done.stderr.decode("utf-8", "replace")[-2000:]}
    unmet = unmet_rules(expected, tree, scratch)
    rules = [*expected["additive"], *expected["reductive"]]
    rate = 1 - len(unmet) / len(rules)
    details.update({"applies": 1, "ifr": rate, "unmet": [expected["names"][rule] for rule in unmet]})
    tests = expected["tests"]
    if tests is None:
        return {**details, "reward": rate}
    counts = run_tests(tests, submission)
    passed, failed = (counts or {}).get("passed", 0), (counts or {}).get("failed", 0)
    passes = passed >= tests["min_passed"] and failed <= tests["max_failed"]
    details.update({"pass": int(passes), "tests_passed": passed, "tests_failed": failed})
    return {**details, "reward": rate if passes else 0.0}


def write_rewards(details: dict[str, Any]) -> None:
    """Write the numbers as Harbor reads them, and all of it beside them."""
    numbers = {name: value for name, value in details.items() if isinstance(value, (int, float))}
    texts = {
        "details.json": json.dumps(details, indent=1),
        "reward.txt": str(details["reward"]),
        "reward.json": json.dumps(numbers),
    }
    LOGS.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = LOGS / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        temporary = LOGS / f".{name}.{os.getpid()}"
        temporary.write_text(f"{text}\n", "utf-8")
        temporary.replace(path)


def copy_base(scratch: Path) -> Path:
    """Return a repository of its own with R, as it was committed, and the benchmark's ignore file."""
    tree = scratch / "tree"
    tree.mkdir()
    check(git(TESTBED, "checkout-index", "--all", "--force", f"--prefix={tree}/"))
    check(git(tree, "init", "--quiet"))
    commit(tree)
    return tree


def commit(tree: Path) -> None:
    """Commit all files, ignored ones too: what is committed is scanned."""
    identity = (
        "-c",
        "user.name=verifier",
        "-c",
        "user.email=verifier@localhost",
        "-c",
        "core.hooksPath=/dev/null",
    )
    check(git(tree, "add", "--all", "--force"))
    check(git(tree, *identity, "commit", "--quiet", "--allow-empty", "--no-verify", "--message=x"))


def unmet_rules(expected: dict[str, Any], tree: Path, scratch: Path) -> list[str]:
    """Return the rules that the tree with the submission does not follow.

    A file that the submission makes unparsable keeps its matches of reductive rules, and so do the files
    that it removes if one that it adds is unparsable. If the engine fails on the submission and not on R, no
    rule is followed.
    """
    names = check(git(tree, "diff", "--cached", "--no-renames", "--name-only", "-z", "HEAD")).stdout
    changed = set(names.decode("utf-8", "replace").split("\0")) - {""}
    removed = {path for path in changed if not os.path.lexists(tree / path)}
    check(git(tree, "branch", "base"))
    commit(tree)
    after: Scan | None = None
    failure = ""
    try:
        after = scan(tree, scratch)
    except ScanError as error:
        failure = str(error)
    before: Scan | None = None
    if after is None or after.unparsed & changed:
        check(git(tree, "checkout", "--quiet", "--force", "base"))
        before = scan(tree, scratch)
    if after is None:
        sys.stderr.write(f"the submission cannot be scanned: {failure}\n")
        return [*expected["additive"], *expected["reductive"]]
    still_there: dict[str, set[str]] = {}
    if before is not None:
        hidden = after.unparsed & changed - before.unparsed
        is_moved = any(not os.path.lexists(tree / path) for path in hidden)  # R is checked out now
        blamed = hidden | removed if is_moved else hidden
        still_there = {rule: paths & blamed for rule, paths in before.matches.items()}
    return [
        *(rule for rule in expected["additive"] if not after.matches.get(rule)),
        *(rule for rule in expected["reductive"] if after.matches.get(rule) or still_there.get(rule)),
    ]


def scan(tree: Path, scratch: Path) -> Scan:
    """Scan a committed tree with all rules, as the published evaluator does."""
    ignore = tree / ".semgrepignore"
    with contextlib.suppress(FileNotFoundError):
        ignore.unlink()
    shutil.copyfile(TESTS / "semgrepignore", ignore)
    report = scratch / "report.json"
    with contextlib.suppress(FileNotFoundError):
        report.unlink()
    command = [ENGINE, "scan", *ENGINE_FLAGS, "--json-output", str(report)]
    command += ["--config", str(TESTS / "rules.json"), "."]
    env = {**os.environ, **git_environment(), "XDG_CACHE_HOME": ENGINE_CACHE, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=SCAN_S, check=False)
        sarif, stated = json.loads(done.stdout), json.loads(report.read_bytes())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ScanError(f"the rule engine failed: {error}") from error
    unparsed = set()
    for each in stated.get("errors", []):
        kind = each["type"][0] if isinstance(each["type"], list) else each["type"]
        if "".join(str(kind).split()).lower() not in PARSE_ERRORS:
            if "".join(str(kind).split()).lower() == "fixpointtimeout" and not each.get("rule_id"):
                continue  # the file was scanned, without following its symbols
            raise ScanError(f"the rule engine failed: {kind}: {str(each.get('message'))[:300]}")
        unparsed.add(normalised(each.get("path", "")))
    matches: dict[str, set[str]] = {}
    for run in sarif["runs"]:
        for result in run["results"]:
            uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            matches.setdefault(result["ruleId"], set()).add(normalised(uri))
    return Scan(matches, unparsed)


def normalised(path: str) -> str:
    """Return a path as git writes it."""
    return path.removeprefix("./")


def run_tests(tests: dict[str, Any], submission: bytes) -> dict[str, int] | None:
    """Apply the submission to /testbed, run the scripts, and return the counts; None without a result."""
    owner = TESTBED.stat().st_uid
    user = pwd.getpwuid(owner) if owner in {each.pw_uid for each in pwd.getpwall()} else None
    env = {**os.environ, "HOME": user.pw_dir if user else os.environ.get("HOME", "/tmp")}  # noqa: S108
    if submission.strip():
        done = git(TESTBED, "apply", "--whitespace=nowarn", "-", stdin=submission, owner=owner)
        if done.returncode:
            raise VerifierError(f"/testbed is not R: {done.stderr.decode('utf-8', 'replace')[-500:]}")
    if SCRIPTS.is_dir():
        for path in SCRIPTS.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(TESTS / "scripts", SCRIPTS, dirs_exist_ok=True)
    for path in (SCRIPTS, *SCRIPTS.rglob("*")):  # /tests is for root alone
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    setup = str(SCRIPTS / "setup_system.sh")
    by_root = None if tests["setup_as_root"] else owner
    code = run_as(by_root, [setup], tests["setup_s"], env, sys.stderr.fileno())
    if code != 0:
        sys.stderr.write(f"setup_system.sh ended with {code}\n")
        return None
    program = f'source {SCRIPTS}/setup_shell.sh >&2 && exec timeout -k 10 "$1" {SCRIPTS}/run_tests'
    command = ["/bin/bash", "-c", program, "tests", str(int(tests["tests_s"]))]
    with tempfile.TemporaryFile() as output:
        code = run_as(owner, command, tests["setup_s"] + tests["tests_s"] + 60, env, output.fileno())
        kill_all_of(owner)
        output.seek(0)
        text = output.read()
    sys.stderr.write(f"run_tests ended with {code}:\n{text[-4000:].decode('utf-8', 'replace')}\n")
    counts = parse_counts(text)
    by_signal = code is None or code < 0 or code in ENDED_LATE or 128 < code <= 192  # noqa: PLR2004
    return None if counts is None or (by_signal and counts["failed"] != code) else counts


def parse_counts(output: bytes) -> dict[str, int] | None:
    """Return the result of the tests, the last line that is not blank; None if it is none."""
    lines = [line for line in output.split(b"\n") if line.strip()]
    try:
        data = json.loads(lines[-1])
        counts = {name: int(data[name]) for name in ("passed", "failed", "total")}
    except (IndexError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    if not all(0 <= count <= _MAX_COUNT for count in counts.values()):
        return None
    return counts if counts["passed"] + counts["failed"] <= counts["total"] else None


def run_as(
    user: int | None, command: list[str], limit_s: float, env: dict[str, str], output: int
) -> int | None:
    """Run a command in /testbed, as another user where possible; return its exit code, None if late."""
    demotion: dict[str, Any] = {}
    if user and os.geteuid() == 0:
        demotion = {
            "user": user,
            "group": TESTBED.stat().st_gid,
            "extra_groups": [],
            "preexec_fn": forbid_sudo,
        }
    process = subprocess.Popen(
        command,
        cwd=TESTBED,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=sys.stderr.fileno(),
        start_new_session=True,
        **demotion,
    )
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def forbid_sudo() -> None:
    """Let no program that this process starts gain rights."""
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def kill_all_of(user: int) -> None:
    """Kill what the tests have left, where they ran as another user."""
    if user and os.geteuid() == 0:
        program = "import os, signal; os.kill(-1, signal.SIGKILL)"
        subprocess.run([sys.executable, "-I", "-c", program], user=user, check=False)


def git(
    folder: Path, *arguments: str, stdin: bytes = b"", owner: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git, with no configuration but its own."""
    demotion: dict[str, Any] = {}
    if owner and os.geteuid() == 0:
        demotion = {"user": owner, "group": TESTBED.stat().st_gid, "extra_groups": []}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            input=stdin,
            env={**os.environ, **git_environment()},
            capture_output=True,
            timeout=GIT_S,
            check=False,
            **demotion,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifierError(f"git {arguments[0]}: {error}") from error


def git_environment() -> dict[str, str]:
    """Return what keeps the machine's settings out, and trusts repositories of other users."""
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def check(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[bytes]:
    """Return a result of git, which must be good."""
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace")[-500:]
        raise VerifierError(f"{' '.join(map(str, done.args[:2]))}: {message}")
    return done


if __name__ == "__main__":
    sys.exit(main())
