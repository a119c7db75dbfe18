"""Settings for reaching package registries from install scripts.

Addresses and proxies are the user's own; credentials are never passed on.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NPM_KEYS = frozenset(
    {
        "registry",
        "proxy",
        "http-proxy",
        "https-proxy",
        "noproxy",
        "strict-ssl",
        "maxsockets",
        "fetch-retries",
        "fetch-timeout",
    }
)
_SCOPE = re.compile(r"@[\w.-]+:registry")
_VARIABLES = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_PROXY"),
)
_USERINFO = re.compile(r"//[^/\s]*@")
_SYSTEM_NPMRC = ("/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc")
_FIXED_SETTINGS = ("audit=false", "fund=false", "update-notifier=false", "ignore-scripts=true", "save=false")


def registry_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environ`` with registry addresses and proxies, without credentials."""
    named = {name: environ.get(name) or environ.get(name.upper(), "") for name in _VARIABLES}
    safe = {name: value for name, value in named.items() if value and not _USERINFO.search(value)}
    return safe | {name.upper(): value for name, value in safe.items()}


def npm_settings(environ: Mapping[str, str]) -> str:
    """Return the text of an ``.npmrc`` with the user's registry and no credentials.

    Scripts of packages do not run; an install script that needs one passes ``--ignore-scripts=false``.
    """
    settings: dict[str, str] = {}
    user = environ.get("NPM_CONFIG_USERCONFIG") or environ.get("npm_config_userconfig", "")
    own = Path(user) if user else Path(environ.get("HOME", "/nonexistent")) / ".npmrc"
    for path in (*map(Path, _SYSTEM_NPMRC), own):
        settings |= _without_credentials(_entries(path))
    variables = (
        (name[len("npm_config_") :].replace("_", "-"), value)
        for name, value in ((name.lower(), value) for name, value in environ.items())
        if name.startswith("npm_config_")
    )
    settings |= _without_credentials(variables)
    return "\n".join([*_FIXED_SETTINGS, *(f"{key}={value}" for key, value in settings.items())]) + "\n"


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not key.lstrip().startswith(("#", ";")):
            yield key.strip(), os.path.expandvars(value.strip().strip("\"'"))


def _without_credentials(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {
        key: value
        for key, value in entries
        if (key in _NPM_KEYS or _SCOPE.fullmatch(key)) and value and not _USERINFO.search(value)
    }
