"""The certificate authorities of containers: a named file must have some."""

from __future__ import annotations

from pathlib import Path

import certifi
import pytest

from codetaste.errors import ConfigError
from codetaste.sandbox.ca_bundle import find_bundle


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
