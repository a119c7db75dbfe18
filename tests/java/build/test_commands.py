"""Commands of builds, and how the poms let an agent reach the JVM of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.java.build.build_system import BuildTool
from codetaste.java.build.commands import AgentOptions, CommandOptions, Goal, build_command
from codetaste.java.build.pom import ArgLine, find_arg_line, read_poms

OPTIONS = CommandOptions("/opt/jdk/8", 8, agent=AgentOptions("-javaagent:a.jar"), stub_jvm="/no/bin/java")
PLUGIN = """<project><build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId>
<configuration><argLine>{}</argLine></configuration></plugin></plugins></build></project>"""
PROPERTY = "<project><properties><argLine>{}</argLine></properties></project>"


def test_tests_of_maven_run_all_and_do_not_fail_the_command() -> None:
    command = build_command(BuildTool.MAVEN, Goal.TEST, OPTIONS)
    assert command.argv[0] == "mvn"
    assert command.argv[-1] == "test"
    assert {"-o", "-fae", "-Drat.skip", "-Denforcer.skip", "-Dmaven.test.failure.ignore=true"} <= set(
        command.argv
    )
    assert "-DargLine=-javaagent:a.jar" in command.argv
    assert command.env == {"JAVA_HOME": "/opt/jdk/8"}


def test_agent_is_a_variable_where_the_poms_decide_and_their_options_stay() -> None:
    by_variable = AgentOptions("-javaagent:a.jar", "-Xmx1g", by_variable=True)
    command = build_command(BuildTool.MAVEN, Goal.TEST, CommandOptions("/j", 17, agent=by_variable))
    assert command.env["JAVA_TOOL_OPTIONS"] == "-javaagent:a.jar"
    assert not [part for part in command.argv if "argLine" in part]
    more = build_command(
        BuildTool.MAVEN, Goal.TEST, CommandOptions("/j", 17, agent=AgentOptions("-javaagent:a.jar", "-Xmx1g"))
    )
    assert "-DargLine=-Xmx1g -javaagent:a.jar" in more.argv


def test_fetching_runs_the_goal_of_the_tests_without_their_jvm() -> None:
    command = build_command(
        BuildTool.MAVEN,
        Goal.FETCH_FOR_TESTS,
        CommandOptions("/j", 17, offline=False, stub_jvm="/no/bin/java"),
    )
    assert command.argv[-1] == "test"
    assert "-Djvm=/no/bin/java" in command.argv
    assert "-o" not in command.argv


def test_old_gradle_runs_on_its_own_jdk_and_a_wrapper_on_that_of_the_job() -> None:
    old = build_command(
        BuildTool.GRADLE, Goal.COMPILE, CommandOptions("/j8", 8, init_script="/a", gradle_home="/j11")
    )
    assert old.argv[0] == "gradle"
    assert old.shown == "gradle --no-daemon --console=plain --continue -q --offline testClasses"
    assert (old.env["JAVA_HOME"], old.env["CODETASTE_JAVA_HOME"], old.env["CODETASTE_JAVA_LEVEL"]) == (
        "/j11",
        "/j8",
        "1.8",
    )
    new = build_command(
        BuildTool.GRADLE, Goal.TEST, CommandOptions("/j17", 17, wrapper=True, gradle_home="/j11")
    )
    assert new.argv[:2] == ("bash", "gradlew")
    assert new.env == {"JAVA_HOME": "/j17", "CODETASTE_AGENT": "", "CODETASTE_REPOSITORY": ""}


@pytest.mark.parametrize(
    ("pom", "expected"),
    [
        ("<project/>", ArgLine(overridable=True)),
        (PROPERTY.format("-Xmx1g"), ArgLine(overridable=True, value="-Xmx1g")),
        (PLUGIN.format("-Xmx1g"), ArgLine(overridable=False)),
        (PLUGIN.format("${argLine} -Xmx1g"), ArgLine(overridable=True)),
        (PLUGIN.format("@{argLine} -Xmx1g"), ArgLine(overridable=True)),
        (PROPERTY.format("${more}"), ArgLine(overridable=False, value="${more}")),
        ("broken", ArgLine(overridable=True)),
    ],
)
def test_arg_line_of_poms(tmp_path: Path, pom: str, expected: ArgLine) -> None:
    (tmp_path / "pom.xml").write_text(pom)
    assert find_arg_line(read_poms(tmp_path)) == expected


def test_compiling_runs_what_belongs_to_the_phase_of_the_tests_but_no_test() -> None:
    command = build_command(BuildTool.MAVEN, Goal.COMPILE, CommandOptions("/j", 17, stub_jvm="/no/bin/java"))
    assert command.argv[-1] == "test"
    assert {"-DskipTests", "-Dmaven.test.skip.exec", "-Djvm=/no/bin/java"} <= set(command.argv)
