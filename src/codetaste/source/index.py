"""Address and certificates of the Python package index, read from pip's settings.

The address comes from ``PIP_INDEX_URL`` or pip's configuration files; the default is the public index.
Certificates come from the system's store, from certifi (a minimal system has no store), and from pip's
settings.
"""

from __future__ import annotations

import configparser
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.errors import SourceError

if TYPE_CHECKING:
    import httpx

_CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def index_url() -> str:
    """Return the address of the simple index (PEP 503), with a trailing slash."""
    address = os.environ.get("PIP_INDEX_URL") or _pip_setting("index-url")
    if not address:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - heavy

        address = PYPI_SIMPLE_ENDPOINT
    if not address.startswith(("https://", "http://")):
        raise SourceError(f"the package index {address!r} is not an http(s) address; correct PIP_INDEX_URL")
    return address.rstrip("/") + "/"


def trust_store() -> ssl.SSLContext:
    """Return the TLS context for connections to the index."""
    import certifi  # noqa: PLC0415 - comes with httpx

    context = ssl.create_default_context()
    named = [os.environ.get(name) for name in _CA_VARIABLES]
    candidates = [certifi.where(), *_SYSTEM_BUNDLES, *named, _pip_setting("cert")]
    bundles = {Path(name).resolve() for name in candidates if name}  # most are links to one file
    for bundle in bundles:
        if bundle.is_file():
            try:
                context.load_verify_locations(bundle)
            except (ssl.SSLError, OSError) as error:
                raise SourceError(f"the certificates in {bundle} cannot be read: {error}") from error
    return context


def make_index_client(timeout_s: float = 60.0) -> httpx.AsyncClient:
    """Return an HTTP client for the index; it uses the proxies of the environment."""
    import httpx  # noqa: PLC0415 - heavy

    return httpx.AsyncClient(
        verify=trust_store(), follow_redirects=True, timeout=httpx.Timeout(timeout_s, connect=20.0)
    )


def _pip_setting(key: str) -> str | None:
    """Return ``key`` from pip's configuration files, user files first."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser fails for a user without home
    own = os.environ.get("PIP_CONFIG_FILE")
    paths = [
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]
    for path in [Path(own), *paths] if own else paths:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip reports it; try the next file
        for section in ("install", "global"):
            found = parser.get(section, key, fallback="")
            if found:
                return found
    return None
