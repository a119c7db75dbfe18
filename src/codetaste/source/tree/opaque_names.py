"""Unguessable names for cache folders whose existence must not be probed.

A command contained by Landlock can test whether a path exists, though it cannot read it. The name of R's
folder must not reveal the name of the folder of R∘X*.
"""

from __future__ import annotations

import hmac
import os
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.core.files import storage_error
from codetaste.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

_SECRET = "secret"  # noqa: S105 - a file name
_SECRET_BYTES = 32


def opaque_name(cache: Path, key: str) -> str:
    """Return the name for ``key``: constant within one cache folder, and unrelated to names of other keys.

    It is derived from a secret: a file of the cache that only its owner can read.

    Raises:
        StorageFull: no space left for the secret.
        SourceError: the cache folder cannot be written.
    """
    path = cache / _SECRET
    try:
        if not path.exists():
            _make(path)
        secret = path.read_bytes()
    except OSError as error:
        raise storage_error(error, f"cannot write {path}", SourceError) from error
    return hmac.new(secret, os.fsencode(key), sha256).hexdigest()[:32]


def _make(path: Path) -> None:
    """Create the secret at ``path`` atomically; a concurrent second creation leaves the first one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{_SECRET}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
