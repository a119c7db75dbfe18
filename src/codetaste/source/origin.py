"""Where R and R∘X* come from: two commits of a repository, or two releases of a package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from codetaste.errors import SourceError

URL_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/:\s]+@[^/:\s]+:")
_SDIST = re.compile(
    r"sdist:([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9.+!_-]*)/([A-Za-z0-9][A-Za-z0-9.+!_-]*)"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
FORGE = "https://github.com"
"""Server from which OWNER/REPO is cloned when no local clone is configured."""


@dataclass(frozen=True, slots=True)
class GitOrigin:
    """Two commits (full hashes) of the repository at ``location``: a path, or an https, ssh or file URL."""

    location: str
    base: str
    golden: str


@dataclass(frozen=True, slots=True)
class SdistOrigin:
    """Two released source distributions of a package, each with the sha256 (hex) of its archive."""

    package: str
    base_version: str
    golden_version: str
    base_sha256: str
    golden_sha256: str


Origin = GitOrigin | SdistOrigin


def parse_origin(
    text: str,
    *,
    owner: str,
    repo: str,
    base: str,
    golden: str,
    repos: Path | None = None,
    folder: Path | None = None,
) -> Origin:
    """Read the ``origin`` column of an instance.

    Args:
        text: "" (a clone below ``repos``, else ``FORGE``), a URL, a path, or ``sdist:PACKAGE/BASE/GOLDEN``.
        owner: owner of the repository.
        repo: name of the repository.
        base: hash of the base commit, or sha256 of the base release's archive.
        golden: hash of the golden commit, or sha256 of the golden release's archive.
        repos: a folder of clones ``OWNER/REPO`` or ``OWNER/REPO.git``, bare or not, or links to them.
        folder: the folder to which a relative path is relative.

    Raises:
        SourceError: ``text`` is malformed.
    """
    if text.startswith("sdist:"):
        parsed = _SDIST.fullmatch(text)
        if parsed is None:
            raise SourceError(f"origin {text!r}: expected sdist:PACKAGE/BASE-VERSION/GOLDEN-VERSION")
        if _SHA256.fullmatch(base) is None or _SHA256.fullmatch(golden) is None:
            raise SourceError(
                f"origin {text!r}: its hashes must be the sha256 of the archives, 64 lower-case hex digits"
            )
        return SdistOrigin(parsed[1], parsed[2], parsed[3], base, golden)
    if not text:
        clones = [repos / owner / name for name in (repo, f"{repo}.git")] if repos else []
        location = next((str(clone) for clone in clones if clone.is_dir()), f"{FORGE}/{owner}/{repo}")
        return GitOrigin(location, base, golden)
    if text.startswith("-") or "::" in text or "\0" in text:
        raise SourceError(f"origin {text!r}: expected a URL, a path, or sdist:PACKAGE/BASE/GOLDEN")
    if URL_PATTERN.match(text) or folder is None:
        return GitOrigin(text, base, golden)
    return GitOrigin(str(folder / Path(text).expanduser()), base, golden)
