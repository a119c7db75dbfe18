"""The registries of this host's tools. Those of the tests name hosts that do not exist, and loopback."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from codetaste.environment.registries import Registries, archive_hosts, find_registries
from codetaste.errors import SourceError
from codetaste.sandbox.proxy.rules import parse_allow_list
from support.source.package_index import PackageIndex, serving

pytestmark = pytest.mark.anyio

NPM = """
case "$*" in
  "config get registry") echo https://npm.invalid/ ;;
  "view npm dist.tarball") echo https://tarballs.invalid:8443/npm ;;
  *) exit 1 ;;
esac
"""
GO = """echo '{"GOPROXY": "https://go.invalid/proxy|direct", "GOSUMDB": "sums.invalid+033de0ae+key"}'"""
CARGO = """
config=$CARGO_HOME/registry/index/index.invalid-1949cf8c6b5b557f
/bin/mkdir -p "$config"
echo '{"dl": "https://crates.invalid/{crate}", "api": "https://api.invalid"}' >"$config/config.json"
"""
APT = """echo "'http://deb.invalid/debian/dists/a/InRelease' deb_a 0 "; echo Warning"""
MAVEN_DEFAULTS = "<project><url>https://maven.invalid/maven2</url></project>"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A host with all tools; each is a script that answers as the real one does."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    for name, script in {"npm": NPM, "go": GO, "cargo": CARGO, "apt-get": APT}.items():
        program(tmp_path / "bin" / name, script)
    maven = tmp_path / "maven"
    (maven / "bin").mkdir(parents=True)
    (maven / "lib").mkdir()
    program(maven / "bin" / "mvn", "exit 1")
    (tmp_path / "bin" / "mvn").symlink_to(maven / "bin" / "mvn")
    with zipfile.ZipFile(maven / "lib" / "maven-model-builder-3.9.jar", "w") as library:
        library.writestr("org/apache/maven/model/pom-4.0.0.xml", MAVEN_DEFAULTS)
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path / "home")}


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def find(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Registries:
    with serving(PackageIndex({"pip-1.0.tar.gz": b"pip"}, project="pip")) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        return await find_registries(environ)


def hosts_of(found: Registries) -> dict[str, tuple[str, ...]]:
    return {tool.tool: tool.hosts for tool in found.tools}


async def test_every_host_that_a_tool_downloads_from_is_found(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await find(environ, monkeypatch)
    assert found.problems == ()
    hosts = hosts_of(found)
    assert hosts.pop("pip")[0].startswith("127.0.0.1:")
    assert hosts == {
        "npm": ("npm.invalid", "tarballs.invalid:8443"),
        "go": ("go.invalid", "sums.invalid"),
        "cargo": ("api.invalid", "crates.invalid", "index.invalid"),
        "maven": ("maven.invalid",),
        "apt": ("deb.invalid",),
    }
    assert parse_allow_list(found.hosts)
    assert found.variables["NPM_CONFIG_REGISTRY"] == "https://npm.invalid/"
    assert found.variables["GOPROXY"] == "https://go.invalid/proxy|direct"
    assert (
        found.variables["UV_DEFAULT_INDEX"]
        == found.variables["PIP_INDEX_URL"]
        == os.environ["PIP_INDEX_URL"] + "/"
    )
    assert found.files == {}


async def test_tools_that_are_missing_or_fail_are_named_and_the_others_found(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "mvn").unlink()
    program(tmp_path / "bin" / "npm", "echo first >&2; echo no such setting >&2; exit 3")
    environ["PATH"] = f"{tmp_path}/bin:{tmp_path}/nothing"
    found = await find(environ, monkeypatch)
    assert found.problems == (
        "the registry of npm is unknown: npm config ended with 3: no such setting",
        "the registry of maven is unknown: mvn is not installed on this host",
    )
    assert set(hosts_of(found)["go"]) == {"go.invalid", "sums.invalid"}


async def test_mirrors_of_the_user_reach_the_container_and_credentials_do_not(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".cargo").mkdir()
    (home / ".cargo" / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "near"\n[source.near]\nregistry = "sparse+https://near.invalid/"\n'
        '[source.secret]\nregistry = "https://user:word@far.invalid/"\n[registry]\ntoken = "word"\n'
    )
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><servers><server><id>a</id>'
        "<password>word</password></server></servers><mirrors>"
        "<mirror><id>a</id><mirrorOf>central</mirrorOf><url>https://mirror.invalid/m?a=1&amp;b=2</url></mirror>"
        "<mirror><id>b</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url></mirror>"
        "<mirror><id>c</id><mirrorOf>*,!central</mirrorOf><url>https://other.invalid/</url></mirror>"
        "</mirrors></settings>"
    )
    program(tmp_path / "bin" / "npm", NPM.replace("https://npm", "https://user:word@npm"))
    found = await find(environ, monkeypatch)
    assert hosts_of(found)["maven"] == ("mirror.invalid",)
    assert hosts_of(found)["npm"] == ("npm.invalid", "tarballs.invalid:8443")
    assert "https://mirror.invalid/m?a=1&amp;b=2" in found.files[".m2/settings.xml"]
    assert 'registry = "sparse+https://near.invalid/"' in found.files[".cargo/config.toml"]
    assert "word" not in json.dumps([*found.files.values(), *found.variables.values()])


async def test_settings_that_cannot_be_read_are_one_line(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".m2").mkdir()
    (tmp_path / "home" / ".m2" / "settings.xml").write_text("<settings>")
    (tmp_path / "home" / ".cargo").mkdir()
    (tmp_path / "home" / ".cargo" / "config.toml").write_text("[")
    program(tmp_path / "bin" / "go", "echo nonsense")
    program(tmp_path / "bin" / "apt-get", "echo \"'ftp://user:word@deb.invalid/debian' a 0\"")
    found = await find(environ, monkeypatch)
    assert [problem.split(" is unknown: ")[0].split()[-1] for problem in found.problems] == [
        "go",
        "cargo",
        "maven",
        "apt",
    ]
    assert all("\n" not in problem and "word" not in problem for problem in found.problems)


async def test_proxy_of_the_host_resolves_the_names_of_registries() -> None:
    assert await archive_hosts("'http://localhost/debian' a 0\n", {}) == ("localhost=private",)
    assert await archive_hosts(
        "'http://localhost:80/debian' a 0\n", {"http_proxy": "http://proxy.invalid:3128"}
    ) == ("localhost",)
    with pytest.raises(SourceError, match="not an http"):
        await archive_hosts("'cdrom:/debian' a 0\n", {})
