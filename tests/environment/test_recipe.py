"""The polyglot image's recipe and checks, as data."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from codetaste.environment.base_image.check import ToolCheck, java_checks, polyglot_checks
from codetaste.environment.base_image.recipe import (
    BASES,
    JAVA_STEPS_FOLDER,
    STEPS_FOLDER,
    java_recipe,
    polyglot_recipe,
)
from codetaste.environment.images.names import content_key
from codetaste.sandbox.base import HOME


@pytest.mark.parametrize("base", BASES)
def test_recipe_of_each_base_is_complete(base: str) -> None:
    recipe = polyglot_recipe(base)
    assert recipe.suite
    assert [step.name for step in recipe.steps][-1] == "clean"
    assert all(step.limit_s > 0 and step.script for step in recipe.steps)
    # What steps say about a version is what the image's PATH names.
    assert f"/v{recipe.variables['NODE_VERSION']}/bin" in recipe.environment["PATH"]
    assert recipe.variables["IMAGE_PATH"] == recipe.environment["PATH"]
    # A project's own test runner comes before the preinstalled one.
    assert recipe.environment["PATH"].split(":")[-1] == "/opt/test-tools/bin"
    assert recipe.environment["PATH"].startswith(f"{HOME}/")


def test_every_script_is_a_step_and_parses() -> None:
    scripts = {path.name: path for path in STEPS_FOLDER.iterdir() if path.suffix == ".sh"}
    names = {f"{step.name}.sh" for base in BASES for step in polyglot_recipe(base).steps}
    assert scripts.keys() == names | {"nvm.sh"}
    of_java = {path.name: path for path in JAVA_STEPS_FOLDER.iterdir()}
    assert of_java.keys() == {f"{step.name}.sh" for step in java_recipe().steps}
    for path in (*scripts.values(), *of_java.values()):
        parsed = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, ""), path.name


def test_changed_recipe_is_another_content() -> None:
    recipe = polyglot_recipe("debian")
    first, *others = recipe.steps
    changed = [
        polyglot_recipe("ubuntu"),
        replace(recipe, suite="trixie"),
        replace(recipe, steps=(replace(first, script=f"{first.script}\n"), *others)),
        replace(recipe, steps=(replace(first, limit_s=1.0), *others)),
        replace(recipe, variables={**recipe.variables, "GO_VERSION": "1.24.0"}),
        replace(recipe, environment={**recipe.environment, "LANG": "C"}),
    ]
    keys = {content_key("polyglot", recipe=one.to_json()) for one in [recipe, *changed]}
    assert len(keys) == 1 + len(changed)
    assert content_key("polyglot", recipe=polyglot_recipe("debian").to_json()) in keys


def test_java_image_has_each_jdk_that_it_installs_and_apt_takes_its_options() -> None:
    recipe = java_recipe()
    jdks = [check.tool.removeprefix("jdk ") for check in java_checks() if check.tool.startswith("jdk ")]
    assert jdks == recipe.variables["JDKS"].split()
    assert any("Check-Valid-Until" in option for option in recipe.apt_options)
    assert "apt_options" in recipe.to_json()
    assert "apt_options" not in polyglot_recipe("debian").to_json(), "the key of images that exist"


@pytest.mark.parametrize("checks", [polyglot_checks(), java_checks()], ids=["polyglot", "java"])
def test_checks_name_each_tool_once_and_parse(checks: tuple[ToolCheck, ...]) -> None:
    names = [check.tool for check in checks]
    assert len(set(names)) == len(names)
    for check in checks:
        parsed = subprocess.run(
            ["bash", "-n", "-c", check.script], capture_output=True, text=True, check=False
        )
        assert (parsed.returncode, parsed.stderr) == (0, ""), check.tool


def test_polyglot_checks_want_the_versions_of_the_paper() -> None:
    checks = polyglot_checks()
    assert {check.tool: check.wanted for check in checks if check.tool in {"go", "node", "python 3.8"}} == {
        "go": "1.23.4",
        "node": "22.12.0",
        "python 3.8": "3.8",
    }
