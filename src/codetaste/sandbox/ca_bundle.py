"""The CA bundle of the host, for sandboxes whose egress passes a proxy with its own certificates."""

from __future__ import annotations

import os
import re
import struct
from hashlib import sha1
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
JAVA_MOUNT = "/opt/codetaste/cacerts.jks"
"""Path of the same certificates for Java, which reads no PEM files."""
_JAVA_PASSWORD = "changeit"  # noqa: S105 - Java's own; there is nothing secret in certificates
_JAVA_VARIABLES = ("MAVEN_OPTS", "GRADLE_OPTS")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
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


def with_java_trust(env: Mapping[str, str]) -> Mapping[str, str]:
    """Return variables that make builds in Java trust the certificates at ``JAVA_MOUNT``, too."""
    options = f"-Djavax.net.ssl.trustStore={JAVA_MOUNT} -Djavax.net.ssl.trustStorePassword={_JAVA_PASSWORD}"
    return {**env, **{name: f"{env.get(name, '')} {options}".strip() for name in _JAVA_VARIABLES}}


def java_trust_store(bundle: Path) -> bytes:
    """Return the certificates of a PEM file as a key store of Java in its oldest format, JKS.

    A store is magic, version, and number of entries; an entry is its type (2: a certificate), alias, time,
    format, and the certificate with its length. The digest at the end depends on the password.
    """
    import ssl  # noqa: PLC0415 - slow to import

    certificates = [ssl.PEM_cert_to_DER_cert(text) for text in _PEM.findall(bundle.read_text("latin-1"))]
    store = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        store += struct.pack(">I", 2) + _java_text(f"ca{number}") + struct.pack(">Q", 0)
        store += _java_text("X.509") + struct.pack(">I", len(certificate)) + certificate
    salted = _JAVA_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + store
    return store + sha1(salted, usedforsecurity=False).digest()


def _java_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def needs_bundle(egress: Egress) -> bool:
    """Whether ``egress`` reaches more than the host: the whole network, or named hosts by a proxy."""
    return egress.network or any(name.lower() == "https_proxy" for name in egress.env)
