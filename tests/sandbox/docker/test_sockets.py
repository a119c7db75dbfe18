"""What is said of an engine's socket and of an image's name before an engine is asked."""

from __future__ import annotations

import grp
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

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
    "image", ["", "codetaste/lean:bookworm-1", "registry.test:5000/a/b@sha256:" + "0" * 64]
)
def test_an_image_is_named_as_engines_name_them(image: str) -> None:
    assert SandboxConfig(image=image).image == image


@pytest.mark.parametrize("image", ["no name", "-x", "../up?x=1", "a@sha256:1", "new\nline", "ü"])
def test_what_cannot_be_an_image_is_refused_as_bad_input(image: str) -> None:
    with pytest.raises(ValidationError, match="cannot be the name of an image"):
        SandboxConfig(image=image)


@pytest.mark.parametrize(
    ("info", "loose"),
    [
        ({"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True, "CgroupVersion": "1"}, ()),
        ({"MemoryLimit": False, "PidsLimit": True, "CpuCfsQuota": True}, ("memory",)),
        ({"MemoryLimit": True, "Rootless": True, "CgroupVersion": "2"}, ()),
        ({"MemoryLimit": True, "Rootless": True, "CgroupVersion": "1"}, ("memory", "processes", "cores")),
    ],
)
def test_limits_that_an_engine_takes_and_does_not_hold_are_known(
    info: dict[str, object], loose: tuple[str, ...]
) -> None:
    assert unsupported_limits(info) == loose
