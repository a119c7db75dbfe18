"""Fail when a committed file holds what must not be shared: download addresses, paths of a machine, keys.

usage: committed.py CHECKOUT      Looks at what git tracks; prints FILE:LINE and the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Written in pieces so that this page passes its own check.
_HOSTS = (
    ("pypi", ".org"),
    ("python", "hosted.org"),
    ("registry.", "npmjs.org"),
    ("registry.", "yarnpkg.com"),
    ("repo.maven.", "apache.org"),
    ("repo1.", "maven.org"),
    ("deb.", "debian.org"),
    ("archive.", "ubuntu.com"),
    ("docker", ".io/"),
    ("ghcr", ".io"),
    ("quay", ".io"),
    ("crates", ".io"),
    ("proxy.", "golang.org"),
)
_REASONS = {
    "a registry's host name": re.compile("|".join(re.escape("".join(parts)) for parts in _HOSTS)),
    "a download address": re.compile(r"https?://[^\s\"']+\.(?:whl|tar\.gz|tgz|crate|jar)\b"),
    "a path of one machine": re.compile(r"(?<![\w./~}-])/(?:work|root)/(?=\.?\w)"),
    "something like a key": re.compile(
        r"\b(?:sk-(?!ant-not-a-)[A-Za-z0-9_-]{20,}|ghp_\w{30,}|github_pat_\w{30,}|AKIA[0-9A-Z]{16}|AIza[\w-]{35}|xox[abps]-[\w-]{10,})"
        "|-----BEGIN [A-Z ]*PRIVATE"
        " KEY-----"
    ),
}


def faults(name: str, text: str) -> list[str]:
    """Return one line for each place in ``text`` that must not be committed."""
    return [
        f"{name}:{number}: {reason}: {found.group()}"
        for number, line in enumerate(text.splitlines(), 1)
        for reason, pattern in _REASONS.items()
        if (found := pattern.search(line))
    ]


def main(checkout: Path) -> int:
    """Check every tracked file; files that are not text are read as far as they are."""
    git = ["git", "-c", f"safe.directory={checkout.resolve()}", "-C", str(checkout), "ls-files", "-z"]
    names = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    files = [(name, checkout / name) for name in names if name and (checkout / name).is_file()]
    found = [fault for name, path in files for fault in faults(name, path.read_text("utf-8", "replace"))]
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
