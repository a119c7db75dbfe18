"""Debian's JDK is unpacked into the cache with its C library; the archive's programs are stand-ins here."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ToolMissing
from codetaste.java import jdk_package
from codetaste.java.jdk import find_jdks
from codetaste.java.jdk_package import install_jdk

pytestmark = pytest.mark.anyio

APT = """
for word in "$@"; do case $word in
indextargets) printf 'Debian\\thttp://archive.invalid/debian\\nOther\\thttp://other.invalid\\n' ;;
update) grep -q 'http://archive.invalid/debian sid main' ../sources.list sources.list 2>/dev/null ;;
download) touch jdk.deb ;;
esac; done
"""
DPKG = """
home=$3/usr/lib/jvm/java-25-openjdk-amd64
mkdir -p "$home/bin" "$3/usr/lib/x/" "$3/etc/java-25-openjdk"
printf '#!/bin/sh\\necho "openjdk version \\\\"25.0.5\\\\"" >&2\\n' >"$home/bin/java"
printf '#!/bin/sh\\nshift 2\\nexec "$@"\\n' >"$3/usr/lib/x/ld-linux-x86-64.so.2"
chmod +x "$home/bin/java" "$3/usr/lib/x/ld-linux-x86-64.so.2"
touch "$3/usr/lib/x/libc.so.6" "$3/etc/java-25-openjdk/security"
ln -s /etc/java-25-openjdk "$home/conf"
"""


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with the programs of Debian."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {"apt-get": APT, "dpkg-deb": DPKG}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}")
        (programs / name).chmod(0o755)
    (tmp_path / "keyring").touch()
    monkeypatch.setattr(jdk_package, "_KEYRING", tmp_path / "keyring")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return tmp_path


async def test_the_jdk_is_unpacked_once_and_found(debian: Path) -> None:
    jdk = await install_jdk(debian / "cache")
    assert (jdk.feature, jdk.version, jdk.compiler) == (25, "25.0.5", True)
    conf = jdk.home / "tree/usr/lib/jvm/java-25-openjdk-amd64/conf/security"
    assert conf.is_file(), "links point into the tree"
    (debian / "bin" / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    assert await install_jdk(debian / "cache") == jdk
    assert jdk in await find_jdks(cache=debian / "cache", environ={"PATH": ""})
    assert not list((debian / "cache" / "jdks").glob(".work-*"))


async def test_a_failing_archive_is_one_line_and_leaves_nothing(debian: Path) -> None:
    (debian / "bin" / "apt-get").write_text(
        f"#!/bin/sh\n{APT.replace('touch jdk.deb', 'echo E: gone >&2; exit 100')}"
    )
    with pytest.raises(ToolMissing, match=r"^apt-get ended with 100: E: gone; install a JDK of release 25"):
        await install_jdk(debian / "cache")
    assert not list((debian / "cache" / "jdks").glob(".work-*"))


async def test_another_system_than_debian_is_one_line(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match=r"on Debian only \(apt-get, dpkg-deb is missing\)"):
        await install_jdk(debian / "cache")
