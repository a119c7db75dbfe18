"""A wheel contains what a checkout contains: prompts, agents, examples, the supervisor."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

FIND = """
import sys
sys.path.insert(0, sys.argv[1])
import codetaste
from codetaste.core.paths import resource_dir
assert codetaste.__file__.startswith(sys.argv[1]), codetaste.__file__
for name in ("agents", "examples", "prompts"):
    folder = resource_dir(name)
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    print(name, folder.is_relative_to(sys.argv[1]), *files)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(CHECKOUT),
    ]
    subprocess.run(pip, check=True, stdin=subprocess.DEVNULL)
    return next(folder.glob("codetaste-*.whl"))


def test_installed_wheel_finds_its_own_prompts_agents_and_examples(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-I", "-c", FIND, tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        name, inside, *files = line.split()
        assert inside == "True"
        sources = (path for path in (CHECKOUT / name).rglob("*") if path.is_file())
        assert set(files) == {
            path.relative_to(CHECKOUT / name).as_posix()
            for path in sources
            if "__pycache__" not in path.parts
        }


def test_wheel_contains_type_marker_and_licence_but_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "codetaste/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("tests/")]


def test_wheel_contains_the_tested_releases_of_its_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = archive.read("codetaste/_data/constraints.txt")
    assert shipped == (CHECKOUT / "constraints.txt").read_bytes()


def test_wheel_names_papers_and_benchmark(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert urls == {
        "CodeTaste paper": "https://arxiv.org/abs/2603.04177",
        "CodeTaste benchmark": "https://github.com/logic-star-ai/codetaste",
        "SWE-Refactor paper": "https://arxiv.org/abs/2602.03712",
    }


def test_wheel_contains_sandbox_supervisor(wheel: Path) -> None:
    parts = list((CHECKOUT / "src/codetaste/sandbox/supervisor").glob("*.mjs"))
    with zipfile.ZipFile(wheel) as archive:
        assert [archive.read(f"codetaste/sandbox/supervisor/{part.name}") for part in parts] == [
            part.read_bytes() for part in parts
        ]
    assert parts
