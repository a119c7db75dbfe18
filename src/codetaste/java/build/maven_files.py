"""Files in HOME that Maven reads: its settings, and the JDKs of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def maven_settings(
    url: str, *, repository: str = "", offline: bool = False, skipped: Iterable[str] = ()
) -> bytes:
    """Return settings in which one repository stands for all others: these cannot be reached.

    Args:
        url: of that repository.
        repository: the local repository; "" for the usual one.
        offline: nothing is fetched.
        skipped: properties that turn off checks.
    """
    mirror = f"<mirror><id>codetaste</id><mirrorOf>external:*</mirrorOf><url>{escape(url)}</url></mirror>"
    local = f"<localRepository>{escape(repository)}</localRepository>" if repository else ""
    properties = "".join(f"<{name}>true</{name}>" for name in skipped)
    profile = (
        f"<profiles><profile><id>checks</id><properties>{properties}</properties></profile></profiles>"
        "<activeProfiles><activeProfile>checks</activeProfile></activeProfiles>"
    )
    parts = [local, "<offline>true</offline>" if offline else "", f"<mirrors>{mirror}</mirrors>"]
    return f"<settings>{''.join(parts)}{profile if properties else ''}</settings>\n".encode()


def maven_toolchains(jdks: Mapping[int, str]) -> bytes:
    """Return the toolchains of JDKs: their folders by feature release."""
    entries = "".join(
        f"<toolchain><type>jdk</type><provides><version>{version}</version></provides>"
        f"<configuration><jdkHome>{escape(home)}</jdkHome></configuration></toolchain>"
        for jdk, home in jdks.items()
        for version in ((jdk, f"1.{jdk}") if jdk < 9 else (jdk,))  # noqa: PLR2004 - named so since 9
    )
    return f"<toolchains>{entries}</toolchains>\n".encode()
