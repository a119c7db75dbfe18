"""The certificate authorities of containers: a named file must have some."""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

import certifi
import pytest

from codetaste.errors import ConfigError
from codetaste.sandbox.ca_bundle import JAVA_MOUNT, find_bundle, java_trust_store, with_java_trust


def test_named_bundle_without_certificate_is_refused(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    with pytest.raises(ConfigError, match=rf"^sandbox\.ca_bundle: there is no file {bundle}; name a"):
        find_bundle(bundle)
    for content in ("", "not a certificate", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"):
        bundle.write_text(content)
        with pytest.raises(ConfigError, match=rf"^sandbox\.ca_bundle: {bundle} is no PEM file: it has no"):
            find_bundle(bundle)
    assert find_bundle(Path(certifi.where())) == Path(certifi.where()).resolve()
    assert find_bundle(False) is None  # noqa: FBT003 - the setting


def test_java_has_the_same_certificates(tmp_path: Path) -> None:
    pems = re.findall(r"-----BEGIN.+?END CERTIFICATE-----", Path(certifi.where()).read_text(), re.DOTALL)
    bundle = tmp_path / "ca.pem"
    bundle.write_text("# two of them\n" + "\n\n".join(pems[:2]) + "\n")
    store = java_trust_store(bundle)
    assert store[:12] == bytes.fromhex("feedfeed 00000002 00000002")
    rest, found = store[12:-20], []
    while rest:
        alias = 6 + int.from_bytes(rest[4:6], "big")
        assert rest[:4] == bytes.fromhex("00000002")
        assert rest[alias + 8 : alias + 15] == b"\x00\x05X.509"
        size = int.from_bytes(rest[alias + 15 : alias + 19], "big")
        found.append(rest[alias + 19 : alias + 19 + size])
        rest = rest[alias + 19 + size :]
    assert found == [ssl.PEM_cert_to_DER_cert(pem) for pem in pems[:2]]
    password = "changeit".encode("utf-16-be")
    assert store[-20:] == hashlib.sha1(password + b"Mighty Aphrodite" + store[:-20]).digest()


def test_builds_in_java_keep_their_proxy() -> None:
    env = with_java_trust({"MAVEN_OPTS": "-Dhttp.proxyPort=8788", "A": "1"})
    assert env["MAVEN_OPTS"].startswith(f"-Dhttp.proxyPort=8788 -Djavax.net.ssl.trustStore={JAVA_MOUNT} ")
    assert env["GRADLE_OPTS"].startswith("-Djavax.net.ssl.trustStore=")
    assert env["A"] == "1"
