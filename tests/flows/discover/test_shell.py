"""The agent's shell, through the real tool, reaches R and system programs, and nothing else."""

# ruff: noqa: E501 (scripts are not wrapped)
from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Workspace

pytestmark = pytest.mark.heavy

KEY = "sk-ant-not-a-real-key-9876543210"
HOME_SECRET = "the-home-secret-7391"
OUTSIDE = "a-file-outside-5512"


@dataclass
class Listener:
    """A listener on four sockets, and the names of those that were reached."""

    port: int
    unix: Path
    reached: list[str] = field(default_factory=list)


def accept(server: socket.socket, name: str, found: Listener) -> None:
    server.listen()
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        found.reached.append(name)
        connection.close()


def receive(server: socket.socket, found: Listener) -> None:
    while server.recv(100) != b"end":
        found.reached.append("udp")


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    tcp.bind(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    udp.bind(("127.0.0.1", port))
    path = tmp_path_factory.mktemp("s") / "s"
    unix.bind(str(path))
    path.chmod(0o777)
    abstract.bind(f"\0codetaste-test-{port}")
    found = Listener(port, path)

    threads = [
        threading.Thread(target=accept, args=(tcp, "tcp", found)),
        threading.Thread(target=accept, args=(unix, "unix", found)),
        threading.Thread(target=accept, args=(abstract, "abstract", found)),
        threading.Thread(target=receive, args=(udp, found)),
    ]
    for thread in threads:
        thread.start()
    yield found
    for server in (tcp, unix, abstract):
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    with socket.socket(type=socket.SOCK_DGRAM) as last:
        last.sendto(b"end", ("127.0.0.1", port))
    for thread in threads:
        thread.join()
    udp.close()


@dataclass
class AttackTargets:
    workspace: Workspace
    home: Path
    listener: Listener
    library: Path
    golden_tree: Path
    base_tree: Path
    clone: Path
    row: tiny_benchmark.Row

    def attacks(self) -> dict[str, str]:
        """Shell commands by what they attack; their exit codes do not matter."""
        port, cache, home, out = self.listener.port, self.workspace.cache, self.home, self.workspace.out
        python = (
            "import socket,sys\n"
            "def go(f,k,a,d=None):\n"
            "  try:\n"
            "    s=socket.socket(f,k); s.settimeout(2)\n"
            "    s.sendto(d,a) if d else s.connect(a)\n"
            "    print('REACHED',f,k)\n"
            "  except Exception as e: print(type(e).__name__)\n"
            "S=socket\n"
            f"go(S.AF_INET,S.SOCK_STREAM,('127.0.0.1',{port}))\n"
            f"go(S.AF_INET,S.SOCK_DGRAM,('127.0.0.1',{port}),b'hello')\n"
            f"go(S.AF_UNIX,S.SOCK_STREAM,{str(self.listener.unix)!r})\n"
            f"go(S.AF_UNIX,S.SOCK_STREAM,'\\0codetaste-test-{port}')\n"
            "go(S.AF_INET,S.SOCK_DGRAM,('192.0.2.1',53),b'hello')\n"
        )
        golden, clone, key = self.golden_tree, self.clone, self.workspace.env["ANTHROPIC_API_KEY"]
        assert key == KEY
        return {
            "control": "cat pack/one.py; pwd; id -u",
            "write": (
                "touch owned; echo x >> pack/one.py; echo x > pack/new.py; rm -f README.md; mkdir d; ln -s / l; "
                f"chmod -R a+w . ; mv pack p; sed -i s/fetch/own/ pack/*.py; touch {self.base_tree}/owned; "
                f"echo x > {self.base_tree}/pack/one.py; mount -o remount,rw / ; git init . ; ls"
            ),
            "socket": (
                f"(echo hi > /dev/tcp/127.0.0.1/{port}) && echo REACHED tcp; "
                f"(echo hi > /dev/udp/127.0.0.1/{port}) && echo REACHED udp; "
                f"python3 - <<'END'\n{python}END\n"
            ),
            "home": (
                f"cat ~/.netrc $HOME/.netrc {home}/.netrc {home}/*; ls -la {home}; cd ~ && cat .netrc; "
                f"cat /root/* /home/*/.bashrc; cat {self.workspace.folder}/outside.txt; cat ../outside.txt; "
                "cat /etc/shadow; cat ../../../../../../../../../etc/shadow"
            ),
            "library": (
                f"cat {self.library}; ls {self.library.parent}; python3 -c 'import pluggy; print(pluggy.__file__)' 2>&1 | tail -1; "
                "find / -path /proc -prune -o -name 'pluggy*' -print -o -name '_hooks.py' -print 2>/dev/null"
            ),
            "golden": (
                f"cat {golden}/pack/one.py; ls {golden} {cache}/trees; cat ../*/pack/*.py ../../*/tree/pack/*.py; "
                f"cat /proc/*/cwd/../../*/tree/pack/one.py; git log -p --all; "
                f"git -C {clone} show {self.row.golden}; cat {clone}/pack/one.py; "
                f"cat /proc/1/root{golden}/pack/one.py; "
                "find / -path /proc -prune -o -name one.py -exec cat {} + 2>/dev/null"
            ),
            "environment": (
                "env; set; export -p; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/task/*/environ; "
                "ps auxwwe; cat /proc/*/cmdline | tr '\\0' ' '"
            ),
            "run": (
                f"cat {out}/journal.jsonl {out}/config.json {out}/*/*; ls -R {self.workspace.folder}; "
                f"cat {self.workspace.config}; find / -path /proc -prune -o -name 'journal.jsonl' -print 2>/dev/null; "
                "for p in /proc/[0-9]*; do ls -l $p/fd; timeout 1 cat $p/fd/[0-9]*; done 2>/dev/null < /dev/null | head -c 9000"
            ),
        }


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory, tools: None, listener: Listener) -> AttackTargets:
    import pluggy

    # A separate benchmark and cache: a successful attack must not damage the shared ones.
    folder = tmp_path_factory.mktemp("targets")
    bench = tiny_benchmark.Bench(folder)
    row = bench.add()
    workspace = tiny_benchmark.make_workspace(
        folder, bench, folder / "cache", {"m": "attacker"}, run="budget_usd = 5.0"
    )
    home = folder / "home"
    home.mkdir()
    (home / ".netrc").write_text(HOME_SECRET)
    (home / "notes.txt").write_text(HOME_SECRET)
    (folder / "outside.txt").write_text(OUTSIDE)
    commands = folder / "attacks.json"
    commands.write_text("[]")
    workspace.env |= {
        "HOME": str(home),
        "ANTHROPIC_API_KEY": KEY,
        "OTHER_TOKEN": KEY,
        "TINY_ATTACKS": str(commands),
    }
    assert workspace.run().code == 0
    trees = {
        path.read_text().count("fetch_new") > 0: path.parents[1]
        for path in workspace.cache.rglob("pack/one.py")
    }
    return AttackTargets(
        workspace,
        home,
        listener,
        Path(pluggy.__file__),
        golden_tree=trees[True],
        base_tree=trees[False],
        clone=bench.repos / "tiny" / "alpha",
        row=row,
    )


def assert_nothing_leaked(outputs: dict[str, str], targets: AttackTargets, engine: str) -> None:
    assert "fetch_old('a')" in outputs["control"], outputs["control"]
    everything = "\n".join(outputs.values())
    assert "REACHED" not in everything
    assert targets.listener.reached == []
    for secret in (KEY, HOME_SECRET, OUTSIDE, "root:", '"event"', "[discover]", "fetch_new", "PluginManager"):
        assert secret not in everything, (engine, secret)
    for line in outputs["library"].splitlines():
        assert "No such file" in line or "pluggy" not in line or "denied" in line or "No module" in line, line
    assert "owned" not in outputs["write"].splitlines()
    base = {
        str(path.relative_to(targets.base_tree)): path.read_text()
        for path in targets.base_tree.rglob("*")
        if path.is_file()
    }
    assert base == {**tiny_benchmark.BASE, "NAME": "alpha\n"}


def test_attack_targets_exist(targets: AttackTargets) -> None:
    """What the attacks search for exists at the paths that they name."""
    assert "PluginManager" in targets.library.read_text()
    assert "fetch_new" in (targets.golden_tree / "pack/one.py").read_text()
    assert '"event"' in (targets.workspace.out / "journal.jsonl").read_text()


@pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
def test_shell_of_run_reaches_no_target(targets: AttackTargets, engine: str) -> None:
    attacks = targets.attacks()
    (targets.workspace.folder / "attacks.json").write_text(json.dumps(list(attacks.values())))
    settings = ("--rerun", "--only", "*/additive", "--set", f"sandbox.engine={engine}")
    result = targets.workspace.run("--json", *settings)
    assert result.code == 0, result.err
    (path,) = (targets.workspace.out / "transcripts").rglob("additive.jsonl")
    answers = [
        block["content"]
        for line in path.read_text().splitlines()[1:]
        for block in json.loads(line)["content"]
        if json.loads(line)["role"] == "user" and "content" in block
    ]
    outputs = dict(zip(attacks, answers, strict=False))
    assert len(outputs) == len(attacks)
    assert_nothing_leaked(outputs, targets, engine)


def test_shell_of_tool_call_reaches_no_target(targets: AttackTargets) -> None:
    attacks = targets.attacks()
    outputs = {}
    for name, command in attacks.items():
        result = targets.workspace.cli(
            *("tool", "call", "bash_explore", "--instance", targets.row.id, "--benchmark"),
            *(str(targets.clone.parents[2] / "bench"), "--repos", str(targets.clone.parents[1])),
            *("--args", json.dumps({"command": command})),
        )
        assert result.code == 0, result.err
        outputs[name] = result.out
    assert_nothing_leaked(outputs, targets, "tool call")


def test_quickstart_shell_sees_library_only_at_base(
    tmp_path: Path, quickstart: tuple[Workspace, tiny_benchmark.CommandResult]
) -> None:
    """Pluggy is installed in this environment, and the cache has R∘X* beside R."""
    other, _ = quickstart
    workspace = Workspace(tmp_path, other.cache, other.config, other.name)
    look = "find / -path /proc -prune -o -name '_hooks.py' -print -o -name '_callers.py' -print 2>/dev/null; ls src"
    result = workspace.cli(
        "tool", "call", "bash_explore", "--instance", "pytest*", "--args", json.dumps({"command": look})
    )
    assert result.code == 0, result.err
    assert set(result.out.split()) == {"pluggy", "pluggy.egg-info"}
    assert "_hooks.py" not in result.out
    assert "_callers.py" not in result.out
