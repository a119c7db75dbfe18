"""The Python package index that this machine uses: its address and whom it trusts, as pip has them.

The address comes from ``PIP_INDEX_URL`` or pip's configuration files, else it is the public index.
Certificates come from the system's store, from certifi (a minimal system has no store), and from what pip is
told to trust.
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
    """Return the address of the simple index (PEP 503), with a slash at its end."""
    address = os.environ.get("PIP_INDEX_URL") or _pip_setting("index-url")
    if not address:
        from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - heavy

        address = PYPI_SIMPLE_ENDPOINT
    if not address.startswith(("https://", "http://")):
        raise SourceError(f"the package index {address!r} is not an http(s) address; correct PIP_INDEX_URL")
    return address.rstrip("/") + "/"


def trust() -> ssl.SSLContext:
    """Return the certificates that a connection to the index may rest upon."""
    import certifi  # noqa: PLC0415 - comes with httpx

    context = ssl.create_default_context()
    named = [os.environ.get(name) for name in _CA_VARIABLES]
    candidates = [certifi.where(), *_SYSTEM_BUNDLES, *named, _pip_setting("cert")]
    bundles = {Path(name).resolve() for name in candidates if name}  # most are one file under many names
    for bundle in bundles:
        if bundle.is_file():
            try:
                context.load_verify_locations(bundle)
            except (ssl.SSLError, OSError) as error:
                raise SourceError(f"the certificates in {bundle} cannot be read: {error}") from error
    return context


def client(timeout_s: float = 60.0) -> httpx.AsyncClient:
    """Return a client for the index; proxies are those of the environment."""
    import httpx  # noqa: PLC0415 - heavy

    return httpx.AsyncClient(
        verify=trust(),
        follow_redirects=True,
        timeout=httpx.Timeout(timeout_s, connect=20.0),
    )


def _pip_setting(key: str) -> str | None:
    """Return ``key`` from pip's configuration files, the nearest to the user first."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path's own fails where a user has no home
    own = os.environ.get("PIP_CONFIG_FILE")
    places = [
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]
    for place in [Path(own), *places] if own else places:
        parser = configparser.RawConfigParser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip complains about it; we go on with the next
        for section in ("install", "global"):
            found = parser.get(section, key, fallback="")
            if found:
                return found
    return None
