"""The developer's tools read the files before and the index of their code; wrong calls are explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from codetaste.agent.tool import Tool
from codetaste.errors import JavaError, JavaOutcome, ToolError
from codetaste.swe_refactor.trials.pair.tools import (
    DeveloperContext,
    callees,
    callers,
    class_body,
    project_structure,
    read_file,
)
from support.swe_refactor.pair_runs import shop_index
from support.swe_refactor.shop import CART, FILES, LABELS

pytestmark = pytest.mark.anyio
MANY = {f"a/b{number % 500}/C{number}.java": b"class C { }" for number in range(1000)}


def context(files: dict[str, bytes] | None = None, **changes: Any) -> DeveloperContext:
    found = {path: text.encode() for path, text in FILES.items()} if files is None else files

    async def open_index() -> Any:
        return shop_index()

    tree: Any = SimpleNamespace(read=found.get, java_files=tuple(sorted(found)))
    return DeveloperContext(tree, changes.get("open_index", open_index))


async def use(tool: Tool, /, *, on: DeveloperContext | None = None, **arguments: Any) -> str:
    return (await tool.call(on or context(), arguments)).text


async def refused(tool: Tool, /, *, on: DeveloperContext | None = None, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.call(on or context(), arguments)
    return str(caught.value)


async def test_the_structure_of_the_project() -> None:
    assert await use(project_structure) == "\n".join(sorted(FILES))
    assert await use(project_structure, folder="/src/main/java/shop/text/") == LABELS
    assert "no Java files" in await refused(project_structure, folder="../other")
    many = (await use(project_structure, on=context(MANY))).splitlines()
    assert many[:2] == ["a/b0: 2 Java files", "a/b1: 2 Java files"]
    assert (len(many), many[-1]) == (401, "(100 further folders left out)")


async def test_lines_of_a_file() -> None:
    text = await use(read_file, path=CART, start_line=6, end_line=7)
    assert text == f"{CART}, lines 6 to 7 of 38:\n/** What somebody buys. */\npublic class Cart {{"
    long = context({"A.java": b"x\r\n" * 1000})
    assert (await use(read_file, on=long, path="A.java")).startswith("A.java, lines 1 to 400 of 1000:\nx\nx")
    assert "lines 900 to 1000" in await use(read_file, on=long, path="A.java", start_line=900, end_line=5)
    assert "has 1,000 lines" in await refused(read_file, on=long, path="A.java", start_line=2000)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "", "src", ".git/config", f"./{CART}", "a\0b"])
async def test_nothing_outside_of_the_tree_is_read(path: str) -> None:
    assert "has no file" in await refused(read_file, path=path)


async def test_the_body_of_a_class() -> None:
    body = await use(class_body, name="Cart")
    assert body == FILES[CART].partition("*/\n")[2].rstrip("\n")
    assert (await use(class_body, name="shop.text.Labels$Inner")).strip() == "static class Inner {\n    }"
    assert "shop.text.Labels.Inner in" in await refused(class_body, name="Inner")
    assert await refused(class_body, name="Card") == "The project has no class Card (did you mean 'Cart'?)."


async def test_callers_and_callees() -> None:
    found = await use(callers, class_name="Cart", method="size(int)")
    assert found.startswith("shop.Cart#size() has 3 calls.\nshop.Cart#prices in")
    assert "shop.Till#far in src/main/java/shop/Till.java, line 4" in found
    assert f"shop.Cart#count() in {CART}, lines 23 to 25:\n    public int count() {{" in found
    found = await use(callees, class_name="shop.Cart", method="count")
    assert found.startswith("shop.Cart#count() calls 1 method of the project.\n\nshop.Cart#size() in")
    found = await use(callees, class_name="Cart", method="Cart#size")
    assert found == "shop.Cart#size() calls 0 methods of the project, and of libraries java.util.List#size."
    assert "no method sizes" in await refused(callers, class_name="Cart", method="sizes")
    assert "no class Bag" in await refused(callees, class_name="Bag", method="size")


async def test_code_that_cannot_be_analysed() -> None:
    async def fail() -> Any:
        raise JavaError("Eclipse JDT: no answer within 1 s", JavaOutcome.TIMEOUT)

    assert "read its files" in await refused(class_body, on=context(open_index=fail), name="Cart")
