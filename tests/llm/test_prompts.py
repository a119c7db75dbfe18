from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError
from codetaste.llm.prompts import load_prompt


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ask.md").write_text(
        "# Ask\n\n{% if loud %}\nLOUD\n{% endif %}\nFind {{ what }} <&> {{ who.name }}.\n"
    )
    (tmp_path / "broken.md").write_text("fine\n{% if %}\n")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe")
    return tmp_path


def test_prompt_is_rendered_without_escaping(folder: Path) -> None:
    text = load_prompt("ask", folder=folder).render(loud=True, what="<b>", who={"name": "é"})
    assert text == "# Ask\n\nLOUD\nFind <b> <&> é."


def test_undefined_variable_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"prompts/ask\.md: 'what' is undefined \(given: loud\)"):
        load_prompt("ask", folder=folder).render(loud=False)


def test_invalid_template_error_names_file_and_line(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"prompts/broken\.md:2: "):
        load_prompt("broken", folder=folder).render()
    with pytest.raises(ConfigError, match="not UTF-8 at byte 0"):
        load_prompt("binary", folder=folder)


@pytest.mark.parametrize("name", ["nope", "../ask", "/etc/passwd", "ask.md", ""])
def test_unknown_prompt_error_lists_known_prompts(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"there are: ask, binary, broken"):
        load_prompt(name, folder=folder)


def test_digest_depends_on_text_alone(folder: Path) -> None:
    before = load_prompt("ask", folder=folder).digest
    assert load_prompt("ask", folder=folder).digest == before
    (folder / "ask.md").write_text("other")
    assert load_prompt("ask", folder=folder).digest != before


def test_installed_prompts_are_valid_templates() -> None:
    from jinja2 import Environment

    folder = resource_dir("prompts")
    for path in folder.rglob("*.md"):
        if path.name != "README.md":
            Environment(autoescape=True).parse(path.read_text("utf-8"))
