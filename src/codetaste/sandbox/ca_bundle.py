"""Certificate authorities of this machine, for boxes whose way out leads through a proxy that has its own."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.sandbox.box import Egress

INSIDE = "/opt/codetaste/ca-certificates.crt"
"""Where the bundle is seen in a container."""
_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
)
_USUAL = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine
)


def find_bundle(wish: Literal["auto", False] | Path) -> Path | None:
    """Return the bundle to mount: the one named, for "auto" this machine's where it has one, else None.

    Raises:
        ConfigError: the file that is named is not there.
    """
    if wish is False:
        return None
    if wish == "auto":
        candidates = (os.environ.get("SSL_CERT_FILE", ""), *_USUAL)
        return next((Path(path).resolve() for path in candidates if path and Path(path).is_file()), None)
    path = Path(wish)
    if not path.is_file():
        raise ConfigError(f"sandbox.ca_bundle: {path} is no file; name a PEM file, or write false for none")
    return path.resolve()


def variables(path: str) -> Mapping[str, str]:
    """Return the variables that make programs trust the bundle at ``path``."""
    return MappingProxyType(dict.fromkeys(_VARIABLES, path))


def wants_bundle(egress: Egress) -> bool:
    """Whether anything beyond this machine can be reached that way: everything, or named hosts by a proxy."""
    return egress.network or any(name.lower() == "https_proxy" for name in egress.env)
