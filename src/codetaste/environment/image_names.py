"""Names of images as they are published, and keys of their content.

The published name of an instance's image is ``localhost/benchmark/<owner>__<repo>-<hash8>__<stage>`` in lower
case. In a registry the same last part stands in another repository, usually with a tag.

A content key is the digest of everything that an image is made from. It is a label of the image, so that an
image with the same key is used instead of built again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codetaste.core.hashing import json_digest
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.benchmark.instance import Instance

LOCAL_REPOSITORY = "localhost/benchmark"
"""Where published images have their names on a machine."""
KEY_LABEL = "codetaste.key"
"""The label of an image with its content key."""
_KEY_FORMAT = 1
_NAME = re.compile(
    r"(?:(?P<repository>[^@\s]+)/)?"
    r"(?P<instance>[a-z0-9_.-]+__[a-z0-9_.-]+-[0-9a-f]{8})__(?P<stage>setup|runtime)"
    r"(?::(?P<tag>[\w.-]{1,128}))?"
)


class ImageStage(StrEnum):
    """Which image of an instance."""

    SETUP = "setup"
    """What the setup agent left: packages are installed, the repository is not built."""
    RUNTIME = "runtime"
    """Where trials and tests run."""


@dataclass(frozen=True, slots=True)
class InstanceImage:
    """An image of one instance; ``instance_id`` is ``Instance.id``, ``tag`` may be ""."""

    instance_id: str
    stage: ImageStage
    repository: str = LOCAL_REPOSITORY
    tag: str = ""

    def __str__(self) -> str:
        """Return the name of the image."""
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}/{self.instance_id}__{self.stage}{tag}"

    @classmethod
    def parse(cls, name: str) -> InstanceImage:
        """Read the name of an image.

        Raises:
            ConfigError: it is not the name of an instance's image.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                f"{name!r} is not the name of an instance's image: it is written as in "
                f"{LOCAL_REPOSITORY}/OWNER__REPO-HASH8__{ImageStage.RUNTIME}, in lower case"
            )
        repository = match["repository"] or LOCAL_REPOSITORY
        return cls(match["instance"], ImageStage(match["stage"]), repository, match["tag"] or "")

    def find_instance(self, instances: Iterable[Instance]) -> Instance | None:
        """Return the instance whose image it is. A name alone does not tell owner and repository apart."""
        return next((instance for instance in instances if instance.id == self.instance_id), None)


def image_name(instance: Instance, stage: ImageStage) -> str:
    """Return the published name of an instance's image on this machine."""
    return str(InstanceImage(instance.id, stage))


def content_key(kind: str, **parts: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the key of the image of that ``kind`` which is made from ``parts``: 64 hex digits.

    Parts are JSON data and named: texts and digests of scripts and files, ids of images. Times, paths of this
    machine and names of images are none.
    """
    return json_digest({"format": _KEY_FORMAT, "kind": kind, "parts": parts})
