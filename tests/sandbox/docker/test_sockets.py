"""Checks before an engine is used: its socket's permissions, image names and limits."""

from __future__ import annotations

import grp
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from codetaste.environment.config import EnvironmentConfig
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.docker.engine import permission_hint
from codetaste.sandbox.docker.spec import unsupported_limits


def test_docker_socket_permission_error_names_group(tmp_path: Path, require: Callable[..., None]) -> None:
    require("root", ok=os.geteuid() == 0, reason="only root can give a file to another group")
    group = grp.getgrall()[-1]
    socket = tmp_path / "sock"
    socket.touch()
    os.chown(socket, 0, group.gr_gid)
    socket.chmod(0o660)
    assert (
        permission_hint(socket)
        == f"join the {group.gr_name} group (sudo usermod -aG {group.gr_name} $USER) and log in again"
    )
    socket.chmod(0o600)
    assert permission_hint(socket) == "start codetaste as its owner"
    assert permission_hint(tmp_path / "nothing") == "start codetaste as a user with access"


@pytest.mark.parametrize(
    "image", ["", "codetaste/lean:bookworm-2", "registry.test:5000/a/b@sha256:" + "0" * 64]
)
def test_valid_image_name_is_accepted(image: str) -> None:
    assert SandboxConfig(image=image).image == image


@pytest.mark.parametrize("image", ["no name", "-x", "../up?x=1", "a@sha256:1", "new\nline", "ü"])
def test_invalid_image_name_is_refused(image: str) -> None:
    for section in (SandboxConfig, EnvironmentConfig):
        with pytest.raises(ValidationError, match="cannot be the name of an image"):
            section(image=image)


@pytest.mark.parametrize(
    ("info", "unenforced"),
    [
        ({"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True, "CgroupVersion": "1"}, ()),
        ({"MemoryLimit": False, "PidsLimit": True, "CpuCfsQuota": True}, ("memory",)),
        ({"MemoryLimit": True, "Rootless": True, "CgroupVersion": "2"}, ()),
        ({"MemoryLimit": True, "Rootless": True, "CgroupVersion": "1"}, ("memory", "processes", "cores")),
    ],
)
def test_limits_that_an_engine_does_not_enforce_are_detected(
    info: dict[str, object], unenforced: tuple[str, ...]
) -> None:
    assert unsupported_limits(info) == unenforced
