"""Finding the rule engine, and unpacking it once for all processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codetaste.errors import EngineError, ToolMissing
from codetaste.rules.engine.install import PINNED_SHA256, PINNED_VERSION, RuleEngine, find_rule_engine


def find(configured: Path | None = None, cache: Path | None = None, **environ: str) -> RuleEngine:
    async def main() -> RuleEngine:
        return await find_rule_engine(configured, cache=cache, environ={"PATH": "/nowhere", **environ})

    return anyio.run(main)


def script(path: Path, version: str = "1.30.0", then: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version}'\n{then}\n")
    path.chmod(0o755)
    return path


def test_engine_is_searched_in_config_environment_and_path(tmp_path: Path) -> None:
    in_config, in_environment, in_path = (
        script(tmp_path / str(n) / "opengrep", f"9.{n}.0") for n in (1, 2, 3)
    )
    path = str(in_path.parent)
    assert find(in_config, OPENGREP_BIN=str(in_environment), PATH=path).version == "9.1.0"
    found = find(OPENGREP_BIN=str(in_environment), PATH=path)
    assert (found.version, found.origin, found.program) == ("9.2.0", "OPENGREP_BIN", in_environment)
    assert find(PATH=path).origin == "PATH"


@pytest.mark.heavy
def test_engine_is_searched_in_wheel_last(engine: RuleEngine) -> None:
    if engine.origin != "wheel":
        pytest.skip(f"this machine's engine comes from {engine.origin}")
    assert find().origin == "wheel"


def test_other_engine_is_used_with_a_warning_and_its_hash(tmp_path: Path) -> None:
    program = script(tmp_path / "opengrep", "9.9.9")
    found = find(program)
    assert not found.is_core
    assert not found.is_pinned
    assert found.sha256 == hashlib.sha256(program.read_bytes()).hexdigest()
    assert "9.9.9" in found.warning
    assert found.sha256[:12] in found.warning
    assert not find(script(tmp_path / "same", PINNED_VERSION)).is_pinned


def test_named_engine_must_be_a_working_program(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="the config names"):
        find(tmp_path / "missing")
    (tmp_path / "text").write_text("x")
    with pytest.raises(ToolMissing, match="OPENGREP_BIN names"):
        find(OPENGREP_BIN=str(tmp_path / "text"))
    with pytest.raises(EngineError, match="failed"):
        find(script(tmp_path / "failing", "no version here", "exit 3"))
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF garbage")
    garbage.chmod(0o755)
    with pytest.raises(EngineError, match="cannot be run"):
        find(garbage, cache=tmp_path / "cache")


def test_program_of_the_wheel_is_not_run_unless_every_byte_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    program = script(tmp_path / "site/tackbox_opengrep/bin/opengrep", PINNED_VERSION, f"touch {ran}")
    (tmp_path / "site/tackbox_opengrep/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(
        EngineError, match=r"is not run: pip install --force-reinstall .* tackbox-opengrep==0"
    ):
        find(cache=tmp_path / "cache")
    assert not ran.exists()
    assert find(OPENGREP_BIN=str(program)).warning
    assert ran.exists()


def test_installed_wheel_is_the_pinned_one(engine: RuleEngine) -> None:
    if engine.origin != "wheel":
        pytest.skip(f"this machine's engine comes from {engine.origin}")
    assert engine.sha256 in PINNED_SHA256
    assert engine.is_pinned
    assert not engine.warning
    assert engine.is_core


def test_unpacking_keeps_only_needed_files_and_is_done_once(engine: RuleEngine, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = find(engine.source_file, cache)
    home = cache / engine.sha256
    if not first.is_core:
        pytest.skip("this engine has no core")
    assert sorted(path.name for path in home.iterdir()) == ["opengrep-cli", "opengrep-core", "version"]
    assert list(cache.iterdir()) == [home]
    unpacked_ns = (home / "opengrep-core").stat().st_mtime_ns
    assert find(engine.source_file, cache) == first
    assert (home / "opengrep-core").stat().st_mtime_ns == unpacked_ns


@pytest.mark.heavy
def test_processes_may_unpack_at_the_same_time(engine: RuleEngine, tmp_path: Path) -> None:
    if not engine.is_core:
        pytest.skip("this engine has no core")
    code = (
        "import anyio, sys; from pathlib import Path\n"
        "from codetaste.rules.engine.install import find_rule_engine as find\n"
        "async def main(): print((await find(Path(sys.argv[1]), cache=Path(sys.argv[2]))).program)\n"
        "anyio.run(main)"
    )
    command = [sys.executable, "-c", code, str(engine.source_file), str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    programs = {process.communicate(timeout=200)[0].strip() for process in running}
    assert programs == {str(tmp_path / engine.sha256 / "opengrep-cli")}
    assert [path.name for path in tmp_path.iterdir()] == [engine.sha256]


@pytest.mark.heavy
def test_interrupted_unpacking_is_repeated(engine: RuleEngine, tmp_path: Path) -> None:
    if not engine.is_core:
        pytest.skip("this engine has no core")
    (tmp_path / "unpack-0999999999-old" / "cache").mkdir(parents=True)
    os.utime(tmp_path / "unpack-0999999999-old", (0, 0))
    assert find(engine.source_file, tmp_path).is_core
    assert [path.name for path in tmp_path.iterdir()] == [engine.sha256]


@pytest.mark.heavy
def test_unwritable_cache_and_missing_home_are_replaced_by_a_temporary_folder(
    engine: RuleEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine.is_core:
        pytest.skip("this engine has no core")
    (tmp_path / "file").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    # A file in the place of the cache refuses even root.
    found = find(engine.source_file, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert found.is_core
    assert found.program.is_relative_to(temporary)
    shutil.rmtree(temporary)
    temporary.mkdir()
    assert find(engine.source_file).program.is_relative_to(temporary)
