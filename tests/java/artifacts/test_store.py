"""Pinned jars: fetched once, from the repository of this host, and never anything else."""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from codetaste.core.concurrency import gather
from codetaste.errors import ConfigError, SourceError, ToolMissing
from codetaste.java.artifacts.artifact_set import (
    Artifact,
    ArtifactSet,
    artifact_set_names,
    load_artifact_set,
)
from codetaste.java.artifacts.repository import REPOSITORY_VARIABLE
from codetaste.java.artifacts.store import class_path, install_artifacts, is_installed
from codetaste.source import download
from support.source.package_index import PackageIndex, serving

pytestmark = pytest.mark.anyio

ONE, TWO = b"jar one", b"jar two, a longer one"


def artifact(name: str, content: bytes, classifier: str = "") -> Artifact:
    return Artifact("org.example", name, "1.0", classifier, sha256(content).hexdigest(), len(content))


WANTED = ArtifactSet("example", (artifact("one", ONE), artifact("two", TWO, "runtime")))
FILES = {"one-1.0.jar": ONE, "two-1.0-runtime.jar": TWO}


async def install(index: PackageIndex, cache: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    monkeypatch.setenv(REPOSITORY_VARIABLE, index.url.rpartition("/simple")[0] + "/files/")
    return await install_artifacts(WANTED, cache)


async def test_jars_are_fetched_once_and_give_the_class_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolMissing, match="codetaste java install example"):
        class_path(WANTED, tmp_path)
    with serving(PackageIndex(FILES)) as index:
        paths = await install(index, tmp_path, monkeypatch)
        assert "/files/org/example/one/1.0/one-1.0.jar" in index.requested_paths
        assert await install(index, tmp_path, monkeypatch) == paths == class_path(WANTED, tmp_path)
        assert len(index.requested_paths) == 2
    assert [path.read_bytes() for path in paths] == [ONE, TWO]
    assert paths[1].name == "two-1.0-runtime.jar"


async def test_two_installations_at_once_fetch_each_jar_once_and_a_killed_one_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "jars/org/example/one/1.0/.one-1.0.jar.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"jar")
    with serving(PackageIndex(FILES)) as index:
        first, second = await gather([partial(install, index, tmp_path, monkeypatch) for _ in range(2)])
        assert sorted(path.rpartition("/")[2] for path in index.requested_paths) == sorted(FILES)
    assert first == second
    assert not left.exists()


async def test_an_installation_without_a_network_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_BACK_OFF_S", (0.0,))
    with serving(PackageIndex(FILES)) as index:
        pass
    with pytest.raises(SourceError, match=r"^org\.example:(one|two):1\.0.*: ") as caught:
        await install(index, tmp_path, monkeypatch)
    assert "\n" not in str(caught.value)


async def test_another_content_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = PackageIndex({**FILES, "one-1.0.jar": b"jar 0ne"})
    with serving(wrong) as index, pytest.raises(SourceError, match=r"^org.example:one:1.0: .* has another"):
        await install(index, tmp_path, monkeypatch)
    assert not is_installed(WANTED, tmp_path)
    assert not list(tmp_path.rglob("*one-1.0*")), "nothing of it stays"  # noqa: ASYNC240
    with serving(PackageIndex(FILES)) as index:
        await install(index, tmp_path, monkeypatch)


async def test_a_lost_or_damaged_jar_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(PackageIndex(FILES)) as index:
        paths = await install(index, tmp_path, monkeypatch)
        paths[0].unlink()
        paths[1].write_bytes(b"short")
        assert not is_installed(WANTED, tmp_path)
        await install(index, tmp_path, monkeypatch)
        assert [path.read_bytes() for path in paths] == [ONE, TWO]
        paths[0].write_bytes(b"jar 0ne")  # of the same size
        await install(index, tmp_path, monkeypatch)
    assert [path.read_bytes() for path in paths] == [ONE, TWO]


async def test_the_class_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(PackageIndex(FILES)) as index:
        await install(index, tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path.parent)
    assert all(path.is_file() and path.is_absolute() for path in class_path(WANTED, Path(tmp_path.name)))


async def test_a_repository_without_the_jar_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(PackageIndex({})) as index, pytest.raises(SourceError, match="not found; check which rep"):
        await install(index, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", artifact_set_names())
def test_every_pinned_set_can_be_read(name: str) -> None:
    wanted = load_artifact_set(name)
    assert len({each.path for each in wanted.artifacts}) == len(wanted.artifacts) > 0
    assert all(re.fullmatch("[0-9a-f]{64}", each.sha256) and each.size > 0 for each in wanted.artifacts)


def test_a_set_that_does_not_exist_is_one_line() -> None:
    with pytest.raises(ConfigError, match="did you mean 'refactoring-miner"):
        load_artifact_set("refactoring-miner-3.1.5")
