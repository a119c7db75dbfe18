"""The releases of a project as folders, fetched by the ordinary clients of the package registries.

npm, go, cargo and mvn run as the user has set them up; source distributions are fetched by codetaste's own
client and checked against a hash, because pip would build them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import anyio

from codetaste.source.sdist import fetch_sdist
from support.environment.projects import Project

TIME_LIMIT_S = 600.0
"""For one command; a client's first start on a machine may fetch parts of the client itself."""


class Trees(NamedTuple):
    """Folders with the files of R and of R∘X*."""

    base: Path
    golden: Path


def fetch(project: Project, folder: Path) -> Trees:
    """Fetch both releases into ``folder``; what is there already is not fetched again.

    Raises:
        FileNotFoundError: the client is not installed.
        subprocess.CalledProcessError: the client fails; its output is in ``stderr``.
        codetaste.errors.SourceError: the package index has no such source distribution.
    """
    trees = Trees(folder / "base", folder / "golden")
    if all(tree.is_dir() for tree in trees):
        return trees
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    for tree in trees:
        shutil.rmtree(tree, ignore_errors=True)
    for number, (version, tree) in enumerate(zip((project.base, project.golden), trees, strict=True)):
        made = work / f"tree-{number}"
        _FETCH[project.language](project, version, work / f"fetch-{number}", made)
        made.rename(tree)
    shutil.rmtree(work)
    return trees


def _fetch_sdist(project: Project, version: str, work: Path, tree: Path) -> None:
    sha256 = project.hashes[version == project.golden]
    work.mkdir(parents=True)
    _unpack_tar(anyio.run(fetch_sdist, project.name, version, sha256, work), tree)


def _fetch_npm(project: Project, version: str, work: Path, tree: Path) -> None:
    work.mkdir(parents=True)
    _client("npm", "pack", "--silent", "--pack-destination", str(work), f"{project.name}@{version}", cwd=work)
    (archive,) = work.glob("*.tgz")
    _unpack_tar(archive, tree)


def _fetch_go(project: Project, version: str, work: Path, tree: Path) -> None:
    work.mkdir(parents=True)
    module = f"{project.name}@v{version}"
    cache = {"GOMODCACHE": str(work / "modules"), "GOFLAGS": "-modcacherw"}
    archive = json.loads(_client("go", "mod", "download", "-json", module, cwd=work, env=cache))["Zip"]
    _unpack_zip(Path(archive), tree, f"{module}/")


def _fetch_crate(project: Project, version: str, work: Path, tree: Path) -> None:
    (work / "src").mkdir(parents=True)
    (work / "src/lib.rs").touch()
    (work / "Cargo.toml").write_text(
        f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{project.name} = "={version}"\n'
    )
    _client("cargo", "vendor", "--quiet", "--versioned-dirs", cwd=work)
    shutil.move(work / "vendor" / f"{project.name}-{version}", tree)
    (tree / ".cargo-checksum.json").unlink()


def _fetch_maven(project: Project, version: str, work: Path, tree: Path) -> None:
    work.mkdir(parents=True)
    group, artifact = project.name.split(":")
    names = {"groupId": group, "artifactId": artifact, "version": version}
    kinds = ({"type": "pom"}, {"classifier": "sources"}, {"classifier": "test-sources"})
    items = "".join(f"<artifactItem>{_xml({**names, **kind})}</artifactItem>" for kind in kinds)
    (work / "pom.xml").write_text(_MAVEN_POM.format(items=items))
    _client("mvn", "--quiet", "--batch-mode", "dependency:copy", cwd=work)
    copied = work / "target/dependency"
    for kind, source in (("main", "sources"), ("test", "test-sources")):
        flat = work / source
        _unpack_zip(copied / f"{artifact}-{version}-{source}.jar", flat)
        for path in flat.rglob("*"):
            name = path.relative_to(flat)
            if path.is_file() and name.parts[0] != "META-INF":
                target = tree / "src" / kind / ("java" if path.suffix == ".java" else "resources") / name
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
    (copied / f"{artifact}-{version}.pom").rename(tree / "pom.xml")


def _xml(values: Mapping[str, str]) -> str:
    return "".join(f"<{key}>{value}</{key}>" for key, value in values.items())


_MAVEN_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion><groupId>fetch</groupId><artifactId>fetch</artifactId><version>0</version>
  <packaging>pom</packaging>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>
    <version>3.6.1</version><configuration><artifactItems>{items}</artifactItems></configuration>
  </plugin></plugins></build>
</project>
"""

_FETCH: Mapping[str, Callable[[Project, str, Path, Path], None]] = {
    "python": _fetch_sdist,
    "javascript": _fetch_npm,
    "go": _fetch_go,
    "rust": _fetch_crate,
    "java": _fetch_maven,
}


def _client(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    environ = {**os.environ, **(env or {})}
    done = subprocess.run(
        command, cwd=cwd, env=environ, check=True, capture_output=True, text=True, timeout=TIME_LIMIT_S
    )
    return done.stdout


def _unpack_tar(archive: Path, tree: Path) -> None:
    """Unpack an archive whose files are all in one folder."""
    unpacked = tree.with_name(f"{tree.name}-unpacked")
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    (top,) = unpacked.iterdir()
    top.rename(tree)


def _unpack_zip(archive: Path, tree: Path, prefix: str = "") -> None:
    unpacked = tree.with_name(f"{tree.name}-unpacked")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(unpacked)
    (unpacked / prefix).rename(tree)
