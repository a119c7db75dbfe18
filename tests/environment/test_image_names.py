"""Names of instances' images, and keys of content."""

from __future__ import annotations

import pytest

from codetaste.benchmark.instance import Instance
from codetaste.environment.image_names import ImageStage, InstanceImage, content_key, image_name
from codetaste.errors import ConfigError

AGENT = Instance("DataDog", "datadog-agent", "71ac8ec8" + "0" * 32, "f" * 40)


def test_names_are_those_of_the_published_metadata() -> None:
    assert image_name(AGENT, ImageStage.SETUP) == "localhost/benchmark/datadog__datadog-agent-71ac8ec8__setup"
    assert image_name(AGENT, ImageStage.RUNTIME).endswith("__runtime")


@pytest.mark.parametrize(
    ("name", "repository", "tag"),
    [
        (image_name(AGENT, ImageStage.RUNTIME), "localhost/benchmark", ""),
        ("datadog__datadog-agent-71ac8ec8__runtime", "localhost/benchmark", ""),
        (
            "registry.invalid:5000/org/codetaste/datadog__datadog-agent-71ac8ec8__runtime:v1.0.0",
            "registry.invalid:5000/org/codetaste",
            "v1.0.0",
        ),
    ],
)
def test_name_is_read_back_to_its_instance(name: str, repository: str, tag: str) -> None:
    found = InstanceImage.parse(name)
    assert (found.repository, found.tag, found.stage) == (repository, tag, ImageStage.RUNTIME)
    other = Instance("a__b", "c-d", "1" * 40, "2" * 40)
    assert found.find_instance([other, AGENT]) is AGENT
    assert found.find_instance([other]) is None
    assert InstanceImage.parse(str(found)) == found


def test_owner_with_the_separator_in_its_name_is_found() -> None:
    odd = Instance("a__b", "c-d", "1" * 40, "2" * 40)
    assert InstanceImage.parse(image_name(odd, ImageStage.SETUP)).find_instance([AGENT, odd]) is odd


@pytest.mark.parametrize(
    "name",
    [
        "codetaste/lean:bookworm-2",
        "localhost/benchmark/koajs__koa-ef467caa",
        "localhost/benchmark/koajs__koa-ef467caa__other",
        "localhost/benchmark/koajs__koa-ef467__setup",
        "localhost/benchmark/Koajs__koa-ef467caa__setup",
        "",
    ],
)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not the name of an instance's image"):
        InstanceImage.parse(name)


def test_key_depends_on_every_part_and_on_nothing_else() -> None:
    key = content_key("runtime", base="sha256:1", scripts={"a": "x", "b": "y"})
    assert key == content_key("runtime", scripts={"b": "y", "a": "x"}, base="sha256:1")
    assert len(key) == 64
    others = [
        content_key("setup", base="sha256:1", scripts={"a": "x", "b": "y"}),
        content_key("runtime", base="sha256:2", scripts={"a": "x", "b": "y"}),
        content_key("runtime", base="sha256:1", scripts={"a": "x", "b": "z"}),
        content_key("runtime", base="sha256:1", scripts={"a": "x", "b": "y"}, more=""),
    ]
    assert len({key, *others}) == 5
