"""The CA bundle of the host, for sandboxes whose egress passes a proxy with its own certificates."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from codetaste.core.paths import SYSTEM_BUNDLES
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.sandbox.base import Egress

BUNDLE_MOUNT = "/opt/codetaste/ca-certificates.crt"
"""Path of the bundle in a container."""
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


def find_bundle(setting: Literal["auto", False] | Path) -> Path | None:
    """Return the bundle to mount: the named file, for "auto" that of the host if it has one, else None.

    Raises:
        ConfigError: the named file does not exist, or has no certificate.
    """
    if setting is False:
        return None
    if setting == "auto":
        candidates = (os.environ.get("SSL_CERT_FILE", ""), *SYSTEM_BUNDLES)
        return next((Path(path).resolve() for path in candidates if path and Path(path).is_file()), None)
    path = Path(setting)
    if not path.is_file():
        raise ConfigError(
            f"sandbox.ca_bundle: there is no file {path.absolute()}; name a PEM file, or write false for none"
        )
    import ssl  # noqa: PLC0415 - slow to import

    try:
        ssl.create_default_context(cafile=path)
    except (ssl.SSLError, OSError) as error:
        reason = "it has no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"sandbox.ca_bundle: {path.absolute()} is no PEM file: {reason}") from None
    return path.resolve()


def trust_variables(path: str) -> Mapping[str, str]:
    """Return the variables that make programs trust the bundle at ``path``."""
    return MappingProxyType(dict.fromkeys(_VARIABLES, path))


def needs_bundle(egress: Egress) -> bool:
    """Whether ``egress`` reaches more than the host: the whole network, or named hosts by a proxy."""
    return egress.network or any(name.lower() == "https_proxy" for name in egress.env)
