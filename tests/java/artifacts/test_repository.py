"""Where jars come from: a variable, Maven's settings, Maven's own default."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.java.artifacts.repository import REPOSITORY_VARIABLE, maven_repository

MIRROR = "<mirror><mirrorOf>{}</mirrorOf><url>https://{}.invalid/m</url></mirror>"


def settings(home: Path, *mirrors: tuple[str, str]) -> dict[str, str]:
    (home / ".m2").mkdir(parents=True, exist_ok=True)
    entries = "".join(MIRROR.format(*each) for each in mirrors)
    (home / ".m2" / "settings.xml").write_text(f"<settings><mirrors>{entries}</mirrors></settings>")
    return {"HOME": str(home), "PATH": ""}


def test_the_variable_comes_first(tmp_path: Path) -> None:
    environ = settings(tmp_path, ("*", "own"))
    assert (
        maven_repository({**environ, REPOSITORY_VARIABLE: "https://named.invalid/x/"})
        == "https://named.invalid/x"
    )


def test_a_mirror_of_the_central_repository_is_used(tmp_path: Path) -> None:
    environ = settings(tmp_path, ("other", "no"), ("*,!central", "no"), ("external:*", "own"), ("*", "later"))
    assert maven_repository(environ) == "https://own.invalid/m"


def test_the_default_is_that_of_maven(tmp_path: Path) -> None:
    (tmp_path / "maven" / "bin").mkdir(parents=True)
    (tmp_path / "maven" / "lib").mkdir()
    program = tmp_path / "maven" / "bin" / "mvn"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with zipfile.ZipFile(tmp_path / "maven" / "lib" / "maven-model-builder-3.jar", "w") as library:
        pom = "<project><url>https://default.invalid/maven2</url></project>"
        library.writestr("org/apache/maven/model/pom-4.0.0.xml", pom)
    environ = {"HOME": str(tmp_path), "PATH": str(program.parent)}
    assert maven_repository(environ) == "https://default.invalid/maven2"


def test_a_host_without_maven_uses_the_central_repository(tmp_path: Path) -> None:
    assert maven_repository({"HOME": str(tmp_path), "PATH": ""}).startswith("https://repo.")


@pytest.mark.parametrize(
    "content",
    [
        b"<settings>",
        b'<?xml version="1.0" encoding="nope"?><settings/>',
        b'<?xml version="1.0" encoding="utf-7"?><settings/>',
        b'<?xml version="1.0" encoding="idna"?><settings/>',
    ],
)
def test_settings_that_are_no_xml_are_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_bytes(content)
    with pytest.raises(SourceError, match=r"settings\.xml: it cannot be read: .+"):
        maven_repository({"HOME": str(tmp_path), "PATH": ""})


@pytest.mark.parametrize("damage", ["no zip", "no pom"])
def test_a_damaged_installation_of_maven_is_one_line(tmp_path: Path, damage: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin" / "mvn").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "mvn").chmod(0o755)
    library = tmp_path / "lib" / "maven-model-builder-3.jar"
    library.write_bytes(b"no zip")
    if damage == "no pom":
        with zipfile.ZipFile(library, "w") as archive:
            archive.writestr("other", "")
    with pytest.raises(SourceError, match=r"maven-model-builder-3\.jar: it cannot be read"):
        maven_repository({"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")})
