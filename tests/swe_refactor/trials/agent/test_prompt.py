"""The prompt of an agent says what the simple one says, and nothing of what the developers did."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from codetaste.java.build.build_system import Build, BuildTool
from codetaste.llm.prompts import Prompts
from codetaste.swe_refactor.score.base_build import BaseBuild
from codetaste.swe_refactor.trials.agent.project import ProjectAccess
from codetaste.swe_refactor.trials.agent.prompt import render_agent_prompt
from codetaste.swe_refactor.verify.local_repository import LocalRepository, PreparedBuild
from support.swe_refactor.shop import FILES, KINDS, instance


def access(build: Build, maven: tuple[int, int] = (3, 9), folder: str = "") -> ProjectAccess:
    context = SimpleNamespace(
        local=LocalRepository(Path("/dependencies")),
        mounts=(),
        files={},
        repository_url="https://maven.example.org/maven2",
    )
    prepared = PreparedBuild(8, {8: "/opt/jdk/8", 11: "/opt/jdk/11"}, maven)
    base = SimpleNamespace(context=context, folder=folder, build=build, prepared=prepared, jdk=8)
    return ProjectAccess(cast("BaseBuild", base))


MAVEN, GRADLE = Build(BuildTool.MAVEN), Build(BuildTool.GRADLE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_prompt_has_the_task_and_not_the_answer(kind: str) -> None:
    found = instance(kind)
    text = render_agent_prompt(found, Prompts(), sorted(FILES), access(MAVEN, folder="core"))
    assert found.source_code_before_refactoring in text
    assert found.source_code_before_for_whole in text
    assert f"{kind} on the method" in text
    assert found.file_path_before in text
    assert "`mvn -o test` in /testbed/core" in text
    assert "#####" not in text, "no format of answers"
    assert ("Project structure:" in text) == ("Move" in kind and kind != "Move And Inline Method")
    assert found.commit_id not in text
    for line in found.source_code_after_refactoring.splitlines():
        known = line.strip() in found.source_code_before_for_whole + found.source_code_before_refactoring
        assert len(line.strip()) < 10 or known or line not in text, line
    assert len(render_agent_prompt(found, Prompts())) < len(text), "a bound of the first call's cost"


def test_maven_finds_dependencies_without_options() -> None:
    new, old = access(MAVEN), access(MAVEN, maven=(3, 8))
    assert new.env["JAVA_HOME"] == old.env["JAVA_HOME"] == "/opt/jdk/8"
    assert new.env["PATH"].startswith("/opt/jdk/8/bin:/")
    assert "maven.repo.local.tail=" in new.env["MAVEN_ARGS"]
    assert "MAVEN_ARGS" not in old.env
    settings = [each.files["/home/agent/.m2/settings.xml"].decode() for each in (new, old)]
    assert all("<offline>true</offline>" in each and "<checkstyle.skip>true" in each for each in settings)
    assert ["<localRepository>" in each for each in settings] == [False, True]
    assert {str(mount.source) for mount in new.mounts} == {"/dependencies/maven", "/dependencies/gradle"}


def test_gradle_of_an_image_runs_on_a_jdk_that_it_knows() -> None:
    found = access(GRADLE)
    assert (found.env["JAVA_HOME"], found.env["CODETASTE_JAVA_HOME"]) == ("/opt/jdk/11", "/opt/jdk/8")
    assert found.test_command == "gradle --offline test"
    assert access(Build(BuildTool.GRADLE, wrapper="8.1")).test_command == "bash gradlew --offline test"
