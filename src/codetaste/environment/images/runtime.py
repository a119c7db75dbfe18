"""``RuntimeEnvironment``: what sandboxes of an instance are opened from once its environment is proven."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codetaste.environment.levels import Level
from codetaste.sandbox.base import Privileges

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


@dataclass(frozen=True, slots=True)
class RuntimeEnvironment:
    """The execution environment of an instance, as trials and test runs use it.

    Attributes:
        image: the runtime image; it has R in /testbed, set up, and the scripts in /scripts.
        image_id: its id in the engine.
        testbed_commit: the only commit of the repository in /testbed.
        privileges: what its scripts need.
        hosts: the hosts that its tests may reach; empty if they need no network.
        refused_hosts: the hosts that they asked for when they had no network.
        level: what was proven.
        copies: packages of the project that the setup installed as copies of R; a test run sets up from
            nothing, or it would test these instead of the patched code.
        hides_proxy: the setup needs the network, and the tests pass without: they do not see the variables
            of the proxy.
        untracked: what the setup leaves in /testbed and git neither has nor ignores, with a slash at the end
            of a folder; it is no part of a patch.
        key: hash of all that the image was made from.
        scripts: digest of the archive of its scripts among the run's texts.
    """

    image: str
    image_id: str
    testbed_commit: str
    privileges: Privileges
    hosts: tuple[str, ...] = ()
    key: str = ""
    scripts: str = ""
    refused_hosts: tuple[str, ...] = ()
    level: Level = Level.GATES_PASS
    copies: tuple[str, ...] = ()
    hides_proxy: bool = False
    untracked: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the environment as JSON data."""
        return {**asdict(self), "level": self.level.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        return cls(
            **{
                **data,
                "privileges": Privileges(data["privileges"]),
                "hosts": tuple(data["hosts"]),
                "refused_hosts": tuple(data["refused_hosts"]),
                "level": Level(data["level"]),
                "copies": tuple(data.get("copies", ())),
                "untracked": tuple(data.get("untracked", ())),
            }
        )
