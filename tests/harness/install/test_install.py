"""Agents are installed once, contained, and completely or not at all; a failure gives one line."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from codetaste.errors import ToolMissing
from codetaste.harness.adapter import Adapter, read_adapter
from codetaste.harness.install import build as installing
from codetaste.harness.install.build import install_agent, script_failure_reason
from codetaste.harness.install.registries import npm_settings, registry_variables
from codetaste.harness.install.store import InstalledAgent, planned_install
from codetaste.sandbox.supervisor.node import node_runtime
from support.flows.tiny_benchmark import leftover_processes
from support.harness.adapters import PLAIN_MANIFEST, make_adapter, make_published_adapter

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _contained(bubblewrap: Path) -> None:
    """Skip without bubblewrap, in which agents are installed."""


async def install(adapter: Adapter, cache: Path, version: str | None = None) -> InstalledAgent:
    return await install_agent(adapter, version, cache, pytest.fail)


async def failure_message(adapter: Adapter, cache: Path) -> str:
    with pytest.raises(ToolMissing) as caught:
        await install(adapter, cache)
    assert "\n" not in str(caught.value)
    assert not planned_install(adapter, None, cache).tree.exists()
    assert [path.name for path in (cache / "agents").iterdir() if path.name.startswith(".new-")] == []
    return str(caught.value)


async def test_installed_tree_has_script_output_adapter_and_shared_node(tmp_path: Path) -> None:
    script = (
        'mkdir -p "$CODETASTE_TREE/node/bin"\n'
        'cp "$CODETASTE_NODE/bin/node" "$CODETASTE_TREE/node/bin/node"\n'
        'echo "$CODETASTE_VERSION $CODETASTE_ARCH" >"$CODETASTE_TREE/made"\n'
        'umask 077; echo secret >"$CODETASTE_TREE/private"; chmod 4777 "$CODETASTE_TREE/made"\n'
        "npm --version\n"
    )
    agent = await install(make_adapter(tmp_path / "mine", install=script), tmp_path / "cache")
    assert (agent.tree / "made").read_text().split()[0] == "1"
    assert json.loads((agent.tree / "installed.json").read_text())["version_output"] == "version 1"
    assert (agent.tree / "adapter/run.sh").stat().st_mode & 0o777 == 0o755
    assert (agent.tree / "private").stat().st_mode & 0o777 == 0o644, "the sandbox has another user"
    assert (agent.tree / "made").stat().st_mode & 0o7777 == 0o755
    original, shared = node_runtime().bin.stat(), (agent.tree / "node/bin/node").stat()
    assert shared.st_size == original.st_size
    assert shared.st_dev != original.st_dev or shared.st_ino == original.st_ino, "one file on one device"


async def test_concurrent_installs_of_one_release_install_it_once(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "agents"
    toml = PLAIN_MANIFEST.replace('["1"]', '["1", "1.1"]')
    script = 'date +%N >"$CODETASTE_TREE/when"; sleep 0.3\n'
    adapter = make_adapter(tmp_path / "mine", run="echo version 1.1\n", install=script, toml=toml)
    trees: list[InstalledAgent] = []

    async def install_once() -> None:
        trees.append(await install(adapter, tmp_path / "cache"))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(install_once)
    assert len({each.tree for each in trees}) == 1
    when = (trees[0].tree / "when").read_text()
    assert (await install(adapter, tmp_path / "cache")).tree == trees[0].tree
    assert (trees[0].tree / "when").read_text() == when
    assert [each.name for each in folder.iterdir() if not each.name.startswith(".")] == [trees[0].id]


async def test_changed_adapter_is_installed_in_another_tree(tmp_path: Path) -> None:
    first = await install(make_adapter(tmp_path / "mine"), tmp_path / "cache")
    (tmp_path / "mine" / "agent.toml").write_text(
        (tmp_path / "mine" / "agent.toml").read_text() + "\n# other\n"
    )
    second = await install(read_adapter(tmp_path / "mine"), tmp_path / "cache")
    assert first.tree != second.tree
    assert first.tree.is_dir()


async def test_install_script_writes_only_its_tree_and_sees_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for scripts")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:password@proxy.invalid:1")
    script = f"""
    exec >"$CODETASTE_TREE/found" 2>/dev/null
    for path in /usr/x /etc/x /x "$CODETASTE_NODE/x" {tmp_path}/x; do
        if echo >"$path"; then echo "wrote $path"; fi
    done
    cat {secret}
    ls -d {Path.home()}
    env | grep -i -e key -e password
    npm config get ignore-scripts >"$CODETASTE_TREE/ignores"
    true
    """
    agent = await install(make_adapter(tmp_path / "mine", install=script), tmp_path / "cache")
    assert (agent.tree / "found").read_text() == ""
    assert (agent.tree / "ignores").read_text().strip() == "true"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["ln -s {outside}", "mkfifo"])
async def test_link_or_pipe_in_place_of_install_record_is_replaced(command: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("the user's own")
    script = f'{command.format(outside=outside)} "$CODETASTE_TREE/installed.json"\n'
    agent = await install(make_adapter(tmp_path / "mine", install=script), tmp_path / "cache")
    assert outside.read_text() == "the user's own"
    assert json.loads((agent.tree / "installed.json").read_text())["version"] == "1"


@pytest.mark.parametrize("replacement", ['ln -s / "$CODETASTE_ADAPTER"', 'touch "$CODETASTE_ADAPTER"', ":"])
async def test_script_that_replaces_its_own_folder_is_refused(replacement: str, tmp_path: Path) -> None:
    script = f'rm -r "$CODETASTE_ADAPTER"; {replacement}\n'
    adapter = make_published_adapter(tmp_path / "theirs", run_agent="true\n", setup=script)
    assert "its install script replaced its own folder adapter/" in await failure_message(
        adapter, tmp_path / "cache"
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo first; echo the reason >&2; exit 3\n", "(install.sh ended with 3): the reason"),
        ("npm install --offline not-there@1.2.3\n", "code ENOTCACHED"),
        ("exit 1\n", "no output"),
        ("no-such-program\n", "not found"),
        ("kill -9 $$\n", "ended with"),
        ("yes | head -c 100000000; exit 1\n", "ended with 1"),
    ],
)
async def test_install_failure_gives_one_line_and_leaves_nothing(
    script: str, expected: str, tmp_path: Path
) -> None:
    adapter = make_adapter(tmp_path / "mine", install=script)
    message = await failure_message(adapter, tmp_path / "cache")
    assert message.startswith("mine 1 cannot be installed")
    assert expected in message
    assert (await anyio.Path(message.rpartition("full output: ")[2]).stat()).st_size < 100_000


async def test_install_rejects_agent_of_other_release_or_that_does_not_start(
    tmp_path: Path,
) -> None:
    toml = PLAIN_MANIFEST.replace('"1"', '"1.2"')
    other = make_adapter(tmp_path / "other", toml=toml)
    assert "says 'version 1', which is another release" in await failure_message(other, tmp_path / "cache")
    broken = make_adapter(tmp_path / "broken")
    (tmp_path / "broken" / "run.sh").write_text("#!/bin/sh\necho 'Error: no terminal' >&2; exit 4\n")
    message = await failure_message(broken, tmp_path / "cache")
    assert "does not run (run.sh --version ended with 4): Error: no terminal" in message


async def test_hanging_script_is_ended_with_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "INSTALL_TIMEOUT_S", 1.0)
    adapter = make_adapter(tmp_path / "mine", install="setsid sleep 54321.5 &\nsleep 54321.5\n")
    assert "took longer than 1 s" in await failure_message(adapter, tmp_path / "cache")
    assert list(leftover_processes("54321.5")) == []


async def test_cancelled_or_killed_install_leaves_nothing(tmp_path: Path) -> None:
    adapter = make_adapter(tmp_path / "mine", install="sleep 100\n")
    with anyio.move_on_after(5.0):
        await install(adapter, tmp_path / "cache")
    assert [
        each.name for each in (tmp_path / "cache/agents").iterdir() if not each.name.endswith(".lock")
    ] == []
    async with await anyio.open_process(["true"]) as dead:
        await dead.wait()
    left = tmp_path / "cache" / "agents" / f".new-{dead.pid}-abc"
    (left / "tree").mkdir(parents=True)
    (left / "tree").chmod(0o500)
    await install(make_adapter(tmp_path / "quick"), tmp_path / "cache")
    assert not left.exists()


async def test_published_agent_is_installed_by_its_image_script(
    tmp_path: Path,
) -> None:
    setup = 'mkdir -p "$CODETASTE_TREE/bin"; printf "#!/bin/sh\\necho hi\\n" >"$CODETASTE_TREE/bin/theirs"\n'
    agent = await install(make_published_adapter(tmp_path / "theirs", "true", setup), tmp_path / "cache")
    assert (agent.tree / "bin/theirs").is_file()
    assert [mount.target for mount in agent.mounts] == [f"/opt/agents/{agent.id}", "/agent"]
    rooted = make_published_adapter(tmp_path / "rooted", "true", "set -e\ntouch /usr/local/bin/x\n")
    message = await failure_message(rooted, tmp_path / "cache")
    assert "there is no root here" in message


def test_failure_reason_is_found_in_script_output() -> None:
    npm = "npm error code E404\nnpm error 404 Not Found - GET x\nnpm error A complete log of it: y\n"
    assert script_failure_reason(npm) == "code E404; 404 Not Found - GET x"
    assert (
        script_failure_reason("one\nE: Unable to locate package x\nlast\n") == "E: Unable to locate package x"
    )
    node = "node:os:305\n    throw x;\n\nSystemError [ERR]: no such user\n    at y\n\nNode.js v22\n"
    assert script_failure_reason(node) == "SystemError [ERR]: no such user"
    assert script_failure_reason("\n \n") == "no output"


def test_install_uses_user_registries_without_credentials(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(
        "registry=https://packages.example/npm/\n"
        "//packages.example/npm/:_authToken=not-a-token\n"
        "_password=not-a-password\n"
        "; comment=1\n"
        "@ours:registry = https://ours.example/\n"
        "https-proxy=http://user:not-a-password@proxy.example/\n"
        "prefix=/somewhere\n"
    )
    environ = {"HOME": str(tmp_path), "npm_config_fetch_retries": "5", "NPM_CONFIG__AUTH": "not-a-key"}
    text = npm_settings(environ)
    assert "registry=https://packages.example/npm/\n" in text
    assert "@ours:registry=https://ours.example/\n" in text
    assert "fetch-retries=5\n" in text
    assert "ignore-scripts=true\n" in text
    assert not any(word in text for word in ("not-a", "prefix", "proxy"))
    variables = registry_variables(
        {
            "https_proxy": "http://proxy.example:1",
            "PIP_INDEX_URL": "https://u:not-a-key@x/",
            "SOME_KEY": "not-a-key",
        }
    )
    assert variables == {"https_proxy": "http://proxy.example:1", "HTTPS_PROXY": "http://proxy.example:1"}


async def test_install_without_bubblewrap_runs_uncontained_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_bubblewrap", lambda: None)
    warnings: list[str] = []
    script = 'npm --version >"$CODETASTE_TREE/npm"; env >env; test -f "$CODETASTE_ADAPTER/run.sh"\n'
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    agent = await install_agent(
        make_adapter(tmp_path / "mine", install=script), None, tmp_path / "cache", warnings.append
    )
    assert warnings == ["mine: its install script runs uncontained, as bubblewrap does not work here"]
    assert (agent.tree / "npm").read_text().strip()
    assert "not-a-key" not in (agent.tree / "env").read_text()


async def test_unwritable_cache_is_reported_and_damaged_tree_is_rebuilt(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolMissing, match=r"cannot be installed in .*: Not a directory"):
        await install(make_adapter(tmp_path / "mine"), tmp_path / "file")
    first = await install(read_adapter(tmp_path / "mine"), tmp_path / "cache")
    (first.tree / "installed.json").unlink()
    (first.tree / "adapter" / "run.sh").unlink()
    again = await install(read_adapter(tmp_path / "mine"), tmp_path / "cache")
    assert (again.tree / "adapter" / "run.sh").is_file()
