"""What a contained command sees of the host: system programs, but no Python or Node packages.

The library that a task is about may be installed on the host, in the very release that the agent must
discover; so package folders are hidden wherever they lie in the visible folders, and so is codetaste itself
with its environment.
"""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
)
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages", "python-wheels", "node_modules", "_bundled"})
_SOURCE_FOLDERS = ("/usr/src", "/usr/local/src")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class HostView:
    """Absolute paths of the host, all read-only in a sandbox."""

    folders: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    """(path, target) of top folders that are links, as on a merged-usr system."""
    settings: tuple[str, ...]
    hidden: tuple[str, ...]
    """Hidden paths under ``folders``; none lies within another."""

    def visible_paths(self) -> tuple[str, ...]:
        """Return the fewest paths that show everything but the hidden ones: for rules that only allow."""
        return tuple(path for folder in self.folders for path in _visible_parts(folder, self.hidden))


@lru_cache(maxsize=1)
def host_view() -> HostView:
    """Return the view of this host, computed once in a process: it walks all of /usr (0.2 s)."""
    present = [path for path in _SYSTEM if os.path.lexists(path)]
    folders = tuple(path for path in present if not Path(path).is_symlink())
    found = {path for folder in folders for path in _package_folders(folder)}
    found.update(path for path in (*_SOURCE_FOLDERS, *_own_environment()) if Path(path).exists())
    hidden: list[str] = []
    for path in sorted(path for path in found if _within(path, folders) and path not in folders):
        if not _within(path, tuple(hidden)):
            hidden.append(path)
    return HostView(
        folders=folders,
        links=tuple((path, str(Path(path).readlink())) for path in present if Path(path).is_symlink()),
        settings=tuple(path for path in _SETTINGS if Path(path).exists()),
        hidden=tuple(hidden),
    )


def command_environment() -> dict[str, str]:
    """Return the environment variables of every contained command: none of this process, and no HOME."""
    return {
        "PATH": SYSTEM_PATH,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        # The tree may belong to another user; git refuses that without this setting.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def find_ripgrep() -> Path | None:
    """Return the path of the ripgrep installed with codetaste, or of the system's."""
    packaged = Path(sysconfig.get_path("scripts")) / "rg"
    path = str(packaged) if packaged.is_file() else shutil.which("rg")
    return Path(path) if path else None


def _package_folders(top: str) -> list[str]:
    """Return the package folders under ``top``, and the targets of those that are links."""
    found: list[str] = []
    for parent, folders, _ in os.walk(top):
        for name in _PACKAGE_FOLDERS.intersection(folders):
            path = f"{parent}/{name}"
            found.append(os.path.realpath(path))
            folders.remove(name)
    return found


def _own_environment() -> set[str]:
    """Return the package folders of this interpreter, its virtual environment, and codetaste."""
    standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    # sys.path begins with the folder of the script: /usr/bin, if the system's pip installed codetaste.
    site_folders = (*site.getsitepackages(), site.getusersitepackages())
    folders = {
        os.path.realpath(path) for path in (*sys.path, *site_folders) if path and Path(path).name != "bin"
    }
    if sys.prefix != sys.base_prefix:
        folders.add(os.path.realpath(sys.prefix))
    package = Path(__file__).resolve().parents[2]
    folders.update((str(package), str(package.parent)))
    needed = standard | {f"{path}/lib-dynload" for path in standard}
    return {
        path for path in folders if path not in needed and not any(_within(one, (path,)) for one in standard)
    }


def _within(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _visible_parts(folder: str, hidden: tuple[str, ...]) -> list[str]:
    if folder in hidden:
        return []
    if not any(_within(path, (folder,)) for path in hidden):
        return [folder]
    with os.scandir(folder) as entries:
        return [
            path
            for entry in sorted(entries, key=lambda one: one.name)
            if not entry.is_symlink()
            for path in (
                _visible_parts(entry.path, hidden)
                if entry.is_dir()
                else [entry.path] * (entry.path not in hidden)
            )
        ]
