"""The Maven repository that this host uses: named by a variable, by Maven's settings, or Maven's default."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from codetaste.core.text import one_line
from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY_VARIABLE = "CODETASTE_MAVEN_REPOSITORY"
"""Names the repository from which jars are fetched."""

_CENTRAL_NAMES = {"*", "external:*", "central"}
"""What the entry ``mirrorOf`` of a mirror names when it stands for the central repository."""
_CENTRAL = ("https:/", "repo.maven" + ".apache.org", "maven2")
"""The central repository, of Maven's own default, for hosts without Maven."""


@dataclass(frozen=True, slots=True)
class MavenConfiguration:
    """The repositories of this host's Maven.

    Attributes:
        mirrors: (mirrorOf, URL) of the mirrors of the central repository, the first one counts.
        defaults: URLs of the repositories of Maven's default, if there is no mirror.
    """

    mirrors: tuple[tuple[str, str], ...]
    defaults: tuple[str, ...]


def maven_repository(environ: Mapping[str, str] | None = None) -> str:
    """Return the base address from which jars are fetched, without a slash at its end. Blocking.

    Raises:
        SourceError: the settings of Maven cannot be read.
    """
    environment = os.environ if environ is None else environ
    if named := environment.get(REPOSITORY_VARIABLE, ""):
        return named.rstrip("/")
    try:
        found = read_maven_configuration(environment)
    except FileNotFoundError:
        return "/".join(_CENTRAL)
    urls = [url for _, url in found.mirrors] or list(found.defaults)
    return (urls[0] if urls else "/".join(_CENTRAL)).rstrip("/")


def read_maven_configuration(environ: Mapping[str, str]) -> MavenConfiguration:
    """Read the settings of this user and of the Maven on PATH. Blocking.

    Raises:
        FileNotFoundError: Maven is not on PATH, and this user has no settings with a mirror.
        SourceError: settings are not XML, or the program is no installation of Maven.
    """
    own = _mirrors(Path(environ.get("HOME") or "/", ".m2", "settings.xml"))
    program = shutil.which("mvn", path=environ.get("PATH", os.defpath))
    if program is None:
        if own:
            return MavenConfiguration(tuple(own), ())
        raise FileNotFoundError("mvn is not installed on this host")
    maven = Path(os.path.realpath(program)).parents[1]
    mirrors = (*own, *_mirrors(maven / "conf" / "settings.xml"))
    return MavenConfiguration(mirrors, () if mirrors else tuple(_defaults(maven)))


def _mirrors(path: Path) -> list[tuple[str, str]]:
    """Return (mirrorOf, URL) of the mirrors of the central repository in a settings file of this user."""
    if not path.is_file():
        return []
    try:
        root = ET.parse(path).getroot()  # noqa: S314 - this user's own file
    except (ET.ParseError, OSError, ValueError, LookupError) as error:
        # The last two come from encodings that Python has and XML cannot have.
        raise SourceError(f"{path}: it cannot be read: {one_line(error)}") from None
    found = []
    for mirror in root.iterfind(".//{*}mirror"):
        values = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in mirror}
        names = {name.strip() for name in values.get("mirrorOf", "").split(",")}
        stands_for_central = names & _CENTRAL_NAMES and "!central" not in names
        if stands_for_central and values.get("blocked") != "true" and "url" in values:
            found.append((",".join(sorted(names)), values["url"]))
    return found


def _defaults(maven: Path) -> list[str]:
    """Return the repositories of the POM from which all others inherit; Maven has it in a library."""
    for library in (maven / "lib").glob("maven-model-builder*.jar"):
        try:
            with zipfile.ZipFile(library) as archive:
                pom = archive.read("org/apache/maven/model/pom-4.0.0.xml").decode()
        except (OSError, ValueError, LookupError, zipfile.BadZipFile) as error:
            raise SourceError(f"{library}: it cannot be read: {one_line(error)}") from None
        return re.findall(r"<url>\s*(https?://[^<\s]+)", pom)
    raise SourceError(f"{maven} is no installation of Maven")
