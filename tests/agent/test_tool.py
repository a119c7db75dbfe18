"""A tool is made from a function's signature and docstring, and validates its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.agent.facts import Facts
from codetaste.agent.tool import BadArguments, ToolAnswer, load_tools, tool, truncate
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from only_for_type_checkers import Context  # type: ignore[import-not-found]


@tool
async def count_lines(
    context: Context, path: str, limit: int = 100, order: Literal["up", "down"] = "up"
) -> str:
    """Count the lines of a file.

    Blank lines count too.

    Args:
        path: The file, relative to the root.
        limit: Stop counting here.
        order: Where to begin.
    """
    return f"{context}:{path}:{limit}:{order}"


@tool(output_limit=30)
async def talk(_context: object) -> ToolAnswer:
    """Return too much text and finish."""
    return ToolAnswer("x" * 100, finish=True)


def test_name_description_and_schema_come_from_function() -> None:
    spec = count_lines.spec
    assert spec.name == "count_lines"
    assert spec.description == "Count the lines of a file.\n\nBlank lines count too."
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the root."},
            "limit": {"type": "integer", "default": 100, "description": "Stop counting here."},
            "order": {
                "type": "string",
                "enum": ["up", "down"],
                "default": "up",
                "description": "Where to begin.",
            },
        },
    }
    jsonschema.Draft202012Validator.check_schema(dict(spec.parameters))


def test_call_fills_in_defaults_and_passes_context() -> None:
    assert anyio.run(count_lines.call, "here", {"path": "a.py"}) == ToolAnswer("here:a.py:100:up")


def test_unknown_arguments_are_left_out_and_named() -> None:
    answer = anyio.run(count_lines.call, "here", {"path": "a.py", "lines": 3, "why": "so"})
    assert answer.text == "[ignored: count_lines has no argument 'lines', 'why']\nhere:a.py:100:up"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "path: Field required"),
        ({"lines": 3}, "[ignored: count_lines has no argument 'lines']"),
        ({"path": "a", "limit": "many"}, "limit: Input should be a valid integer"),
        ({"path": "a", "order": "sideways"}, "order: Input should be 'up' or 'down'"),
    ],
)
def test_invalid_arguments_raise_error_with_reason(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadArguments, match=r"bad arguments for count_lines") as caught:
        anyio.run(count_lines.call, None, arguments)
    assert expected in str(caught.value)
    assert "arguments: path, limit, order" in str(caught.value)


def test_long_tool_output_is_truncated() -> None:
    answer = anyio.run(talk.call, None, {})
    assert answer.finish
    assert answer.text.startswith("x" * 20)
    assert "70 characters left out" in answer.text


@settings(max_examples=200)
@given(st.text(max_size=300), st.integers(min_value=3, max_value=200))
def test_truncate_preserves_both_ends_and_counts_dropped_characters(text: str, limit: int) -> None:
    short = truncate(text, limit)
    if len(text) <= limit:
        assert short == text
        return
    head, _, rest = short.partition("\n[… ")
    dropped, _, tail = rest.partition(" characters left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(dropped) + len(tail) == len(text)
    assert len(head) + len(tail) <= limit


def test_invalid_tool_function_is_refused_at_decoration() -> None:
    async def undocumented(context: object) -> str:
        return ""

    async def untyped(context: object, path) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Do something."""
        return ""

    async def greedy(context: object, *paths: str) -> str:
        """Do something."""
        return ""

    def blocking(context: object) -> str:
        """Do something."""
        return ""

    for function, expected in [
        (undocumented, "docstring"),
        (untyped, "'path' needs a type"),
        (greedy, "cannot fill"),
        (blocking, "async def"),
    ]:
        with pytest.raises(TypeError, match=expected):
            tool(function)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signature", "arguments", "problem"),
    [
        ("path: str", "", "its first parameter must be the agent's context, not 'path: str'"),
        ("path", "", "its first parameter must be the agent's context, not 'path'"),
        ("", "", "its first parameter must be the agent's context"),
        ("context, _hidden: int", "", "rename parameter '_hidden'"),
        ("context, model_dump: int", "", "rename parameter 'model_dump'"),
        (
            "context, path: str",
            "paht: What.",
            "'Args:' has 'paht', which is no parameter .did you mean 'path'",
        ),
        ("context, path: str", " ", "its docstring cannot be read"),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    signature: str, arguments: str, problem: str, tmp_path: Path
) -> None:
    documented = f"\n\n    Args:\n        {arguments}\n    " if arguments else ""
    (tmp_path / "mine.py").write_text(
        f"from codetaste.agent.tool import tool\n@tool\nasync def wrong({signature}) -> str:\n"
        f'    """Do.{documented}"""\n'
    )
    with pytest.raises(ConfigError, match=rf"tool wrong: {problem}"):
        load_tools(["mine.py:wrong"], base_dir=tmp_path)


@pytest.mark.parametrize("first", ["context", "_ctx", "_", "c: 'RuleContext'", "anything: object"])
def test_first_parameter_is_the_context_by_name_or_annotation(first: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"from codetaste.agent.tool import tool\n@tool\nasync def right({first}) -> str:\n    'Do.'\n"
    )
    assert load_tools(["mine.py:right"], base_dir=tmp_path)


def test_tool_is_loaded_from_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from codetaste.agent.tool import tool\n"
        "@tool\nasync def shout(context: object, text: str) -> str:\n '''Shout.'''\n return text.upper()\n"
    )
    (shout,) = load_tools(["mine.py:shout"], base_dir=tmp_path)
    assert anyio.run(shout.call, None, {"text": "a"}).text == "A"


def test_all_tools_that_cannot_be_loaded_are_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "other.py").write_text("value = 3\n")
    with pytest.raises(ConfigError) as caught:
        load_tools(
            ["nowhere", "no.such:thing", "gone.py:x", "broken.py:x", "other.py:value", "other.py:gone"],
            base_dir=tmp_path,
        )
    problems = caught.value.problems
    assert len(problems) == 6
    for line, word in zip(
        problems,
        ["import path", "no module", "no file", "ZeroDivisionError", "@codetaste", "has no 'gone'"],
        strict=True,
    ):
        assert word in line


def test_facts_of_failed_call_are_dropped() -> None:
    facts = Facts()
    facts.add("rule", 1)
    assert facts.of_kind("rule") == [1]
    facts.drop_pending()
    assert facts.of_kind("rule") == []
    facts.add("rule", 2)
    assert facts.take_pending() == [["rule", 2]]
    facts.drop_pending()
    other = Facts()
    other.restore([["rule", 2]])
    assert facts.of_kind("rule") == other.of_kind("rule") == [2]
