from __future__ import annotations

import re
from pathlib import Path

import pytest

from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError
from codetaste.llm.prompts import Prompts, load_prompt, open_prompts


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
    with pytest.raises(ConfigError, match=r"ask\.md: 'what' is undefined \(given: loud\)"):
        load_prompt("ask", folder=folder).render(loud=False)


def test_invalid_template_error_names_file_and_line(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"broken\.md:2: "):
        load_prompt("broken", folder=folder).render()
    with pytest.raises(ConfigError, match="not UTF-8 at byte 0"):
        load_prompt("binary", folder=folder)


@pytest.mark.parametrize("name", ["nope", "../ask", "/etc/passwd", "ask.md", ""])
def test_unknown_prompt_error_lists_known_prompts(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"there are: ask, binary, broken"):
        load_prompt(name, folder=folder)


def test_prompt_edited_after_it_was_read_stays_as_it_was(folder: Path) -> None:
    before = load_prompt("ask", folder=folder)
    (folder / "ask.md").write_text("other")
    assert load_prompt("ask", folder=folder) == before


def test_files_of_a_folder_replace_prompts_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("Plan {{ task }}.")
    (tmp_path / "README.md").write_text("Mine.")
    prompts = open_prompts(tmp_path)
    assert prompts.load("plan").render(task="it") == "Plan it."
    assert prompts.load("infer") == Prompts().load("infer") == load_prompt("infer")


def test_prompt_in_a_sub_folder_is_replaced_by_the_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "swe_refactor").mkdir()
    (tmp_path / "swe_refactor" / "move_inline.md").write_text("{{ code_to_refactor }}!")
    prompts = open_prompts(tmp_path)
    assert prompts.load("swe_refactor/move_inline").render(code_to_refactor="x") == "x!"
    assert prompts.load("swe_refactor/move") == load_prompt("swe_refactor/move")
    (tmp_path / "swe_refactor" / "moves.md").write_text("x")
    with pytest.raises(ConfigError, match=r"swe_refactor/moves\.md replaces no prompt .*'swe_refactor/move'"):
        open_prompts(tmp_path)


def test_folder_with_wrong_prompts_names_each(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no prompt; the names are .*code_system, describe_again"):
        open_prompts(tmp_path)
    (tmp_path / "plans.md").write_text("Plan.")
    (tmp_path / "infer.md").write_bytes(b"\xff")
    with pytest.raises(ConfigError) as raised:
        open_prompts(tmp_path)
    problems = raised.value.problems
    assert f"{tmp_path}/infer.md: not UTF-8 at byte 0" in problems
    assert any("plans.md replaces no prompt" in each and "'plan'" in each for each in problems)
    with pytest.raises(ConfigError, match="is not a folder"):
        open_prompts(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("infer", "{% if %}", ":1: Expected an expression"),
        ("plan", "{{ tusk }}", ": there is no value 'tusk' (did you mean 'task'?)"),
        (
            "judge",
            "{% if plans == 'x' %}{{ z }}{% endif %}",
            ": there is no value 'z' (known: description, plans)",
        ),
        ("code_system", "{{ task }}", ": there is no value 'task' (this prompt is given none)"),
        ("multiplan", " \n", ": it is empty"),
    ],
)
def test_faulty_template_of_ones_own_is_refused_before_it_is_used(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / f"{name}.md").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path}/{name}.md{problem}")):
        open_prompts(tmp_path)


def test_folder_with_the_name_of_a_prompt_is_refused(tmp_path: Path) -> None:
    (tmp_path / "judge_again.md").mkdir()
    with pytest.raises(ConfigError, match=r"judge_again\.md: cannot be read: Is a directory"):
        open_prompts(tmp_path)


def test_template_that_fails_when_it_is_used_is_a_mistake_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "execute_plan.md").write_text("{{ range(3) | length // 0 }}{{ plan }}")
    prompt = open_prompts(tmp_path).load("execute_plan")
    with pytest.raises(ConfigError, match=r"execute_plan\.md: .*by zero \(given: plan\)"):
        prompt.render(plan="it")


def test_installed_prompts_are_valid_templates() -> None:
    from jinja2 import Environment

    folder = resource_dir("prompts")
    templates = [path for path in folder.rglob("*.md") if path.name != "README.md"]
    assert templates
    for path in templates:
        Environment(autoescape=True).parse(path.read_text("utf-8"))


def test_readme_names_each_prompt_and_what_it_is_given() -> None:
    from jinja2 import Environment, meta

    folder = resource_dir("prompts")
    rows = re.findall(
        r"^\| `([\w/]+)\.md` \|[^|]*\| ([^|]*) \|$", (folder / "README.md").read_text(), re.MULTILINE
    )
    given = {name: set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", text))) for name, text in rows}
    names = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")}
    assert set(given) == names - {"README"}
    for name, values in given.items():
        used = meta.find_undeclared_variables(Environment(autoescape=True).parse(load_prompt(name).text))
        assert used == values, name
