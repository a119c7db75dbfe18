"""Locate what is outside the code: data folders, the cache folder, certificate authorities.

The data folders (``prompts/``, ``agents/``, ``examples/``) are at the top of a checkout, and inside the
package in an installation from a wheel.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.errors import SourceError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


_PACKAGE = Path(__file__).resolve().parents[1]

_CHECKOUT = _PACKAGE.parent.parent

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine
)
"""Where systems have the certificates of the authorities that they trust."""


def resource_dir(name: str) -> Path:
    """Return the folder ``name`` ("prompts", "agents", "examples") of this installation.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    return _find_data(name)


def constraints_file() -> Path:
    """Return the file with the exact releases of packages that this codetaste is tested with.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    return _find_data("constraints.txt")


def _find_data(name: str) -> Path:
    for candidate in (_PACKAGE / "_data" / name, _CHECKOUT / name):
        if candidate.exists():
            return candidate
    message = f"{name} is missing from this installation of codetaste ({_PACKAGE}); reinstall codetaste"
    raise FileNotFoundError(message)


def cache_dir(warn: Callable[[str], None]) -> Path:
    """Return the folder that caches trees, archives, clones and matches: ``$XDG_CACHE_HOME/codetaste``.

    If it is not writable, a temporary folder of this user is used instead, and reported through ``warn``.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser fails if the user has no home
    default = (Path(xdg) if Path(xdg).is_absolute() else Path(home) / ".cache") / "codetaste"
    reason = _unwritable(default)
    if not reason or (fallback := private_temporary_folder()) is None or _unwritable(fallback):
        return default
    warn(f"{default}: {reason}, so it cannot be the cache; {fallback} is used instead")
    return fallback


def _unwritable(folder: Path) -> str:
    """Return why ``folder``, which is created, cannot be written; "" if it can."""
    if not folder.is_absolute():
        return "this user has no home"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def private_temporary_folder() -> Path | None:
    """Return a folder that lasts between runs, for users without a cache folder; None if impossible."""
    private = Path(tempfile.gettempdir()) / f"codetaste-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        state = private.lstat()
    except OSError:
        return None
    safe = state.st_uid == os.getuid() and not private.is_symlink() and not state.st_mode & 0o022
    return private if safe else None


def trust_store(*bundles: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the authorities of the system, certifi and ``bundles``.

    Raises:
        SourceError: one of ``bundles`` is a file, but without certificates.
    """
    import ssl  # noqa: PLC0415 - only for https

    import certifi  # noqa: PLC0415 - only for https

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    for bundle in {Path(name).resolve() for name in bundles if name}:  # most are links to one file
        if bundle.is_file():
            try:
                context.load_verify_locations(bundle)
            except (ssl.SSLError, OSError) as error:
                raise SourceError(f"the certificates in {bundle} cannot be read: {error}") from error
    return context
