"""Archives of images as engines write them: the format of Docker, and that of OCI."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.environment.golden import Files, as_tar


def layer_id(layer: Files) -> str:
    return f"sha256:{hashlib.sha256(as_tar(layer)).hexdigest()}"


def image_config(layers: Sequence[Files], more: Mapping[str, Any] | None = None) -> bytes:
    config = {
        "architecture": "amd64",
        "config": {"Env": ["PATH=/bin"], "Labels": {"codetaste.image": "runtime"}},
        "rootfs": {"type": "layers", "diff_ids": [layer_id(layer) for layer in layers]},
        "history": [{"created_by": "/bin/sh"} for _ in layers],
        **(more or {}),
    }
    return json.dumps(config).encode()


def docker_archive(layers: Sequence[Files], more: Mapping[str, Any] | None = None) -> bytes:
    """As Docker 20 writes it: a layer's folder has a name that only Docker knows; the manifest is last."""
    config = image_config(layers, more)
    names = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(len(layers))]
    files: dict[str, bytes] = {}
    for name, layer in zip(names, layers, strict=True):
        files[f"{name}/VERSION"] = b"1.0"
        files[f"{name}/json"] = b'{"id": "x"}'
        files[f"{name}/layer.tar"] = as_tar(layer)
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "Layers": [f"{name}/layer.tar" for name in names]}]
    return as_tar({**files, config_name: config, "manifest.json": json.dumps(manifest).encode()})


def oci_archive(layers: Sequence[Files], *, compressed: bool, more: Mapping[str, Any] | None = None) -> bytes:
    """As Docker 25 and Podman write it: all are blobs, named by their digests."""
    config = image_config(layers, more)
    stored = [gzip.compress(as_tar(layer)) if compressed else as_tar(layer) for layer in layers]
    blobs = {f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": blob for blob in (*stored, config)}
    index = {"schemaVersion": 2, "manifests": []}
    return as_tar(
        {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(), **blobs}
    )
