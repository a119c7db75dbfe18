"""Command lines of builds: compile a project, run all its tests, fetch what these need."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.java.build.build_system import BuildTool

if TYPE_CHECKING:
    from collections.abc import Mapping

SKIPPED_CHECKS = (
    "rat.skip", "checkstyle.skip", "enforcer.skip", "maven.javadoc.skip", "animal.sniffer.skip",
    "jacoco.skip", "spotbugs.skip", "findbugs.skip", "pmd.skip", "cpd.skip", "license.skip",
    "license.skipCheckLicense", "spotless.check.skip", "spotless.apply.skip", "fmt.skip", "formatter.skip",
    "impsort.skip", "gpg.skip", "forbiddenapis.skip", "cobertura.skip", "clirr.skip", "japicmp.skip",
    "revapi.skip", "mdep.analyze.skip", "sortpom.skip", "dependency-check.skip", "maven.source.skip",
)  # fmt: skip
"""Properties that turn off checks of style and licences: old ones fail on new JDKs, or without a network."""
GRADLE_JDK = 11
"""The newest JDK that the Gradle of Debian (4.8) knows; it runs on it, whichever JDK compiles."""


class Goal(StrEnum):
    """What a command is to do."""

    COMPILE = "compile"
    """All that TEST does but the tests: compile code and tests, and what else belongs to the phase."""
    TEST = "test"
    """Run all tests; failed tests do not fail the command."""
    FETCH_FOR_TESTS = "fetch for tests"
    """As TEST, with a program in place of the JVM of the tests that ends at once."""


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """A command of a build: its arguments and variables. ``workdir`` is the project's folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def shown(self) -> str:
        """The command for people: without options that name files of a sandbox."""
        return " ".join(part for part in self.argv if "/" not in part)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How the JVM of tests gets an agent.

    Attributes:
        option: of that JVM, with the agent that measures coverage; "" for none.
        arg_line: its further options, which the poms give it.
        by_variable: the agent is given to every JVM by JAVA_TOOL_OPTIONS, since the poms decide the options.
    """

    option: str = ""
    arg_line: str = ""
    by_variable: bool = False


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """What is common to the commands of one build.

    Attributes:
        java_home: the JDK.
        jdk: its feature release.
        offline: nothing is fetched.
        repository: further options of the tool, as where its local repository is.
        agent: of the JVM of tests.
        repository_url: the Maven repository that stands for all of a build with Gradle; "" for their own.
        stub_jvm: the program in place of the JVM of tests, for all goals but TEST.
        init_script: of Gradle.
        wrapper: Gradle's wrapper is run, on ``java_home``; else the Gradle on PATH.
        gradle_home: the JDK that the Gradle on PATH runs on.
    """

    java_home: str
    jdk: int
    offline: bool = True
    repository: tuple[str, ...] = ()
    agent: AgentOptions = AgentOptions()
    repository_url: str = ""
    stub_jvm: str = ""
    init_script: str = ""
    wrapper: bool = False
    gradle_home: str = ""


def build_command(tool: BuildTool, goal: Goal, options: CommandOptions) -> BuildCommand:
    """Return the command of ``tool`` for ``goal``."""
    return _maven(goal, options) if tool is BuildTool.MAVEN else _gradle(goal, options)


def _maven(goal: Goal, options: CommandOptions) -> BuildCommand:
    argv = ["mvn", "-B", "-ntp", "-fae"]
    argv += ["-o"] if options.offline else []
    argv += [*options.repository, "-Dstyle.color=never", *(f"-D{name}" for name in SKIPPED_CHECKS)]
    if goal is Goal.COMPILE:
        # Poms can decide on the first two; a JVM that is none runs no test in any case.
        no_tests = ("-DskipTests", "-Dmaven.test.skip.exec", *_stub_jvm(options))
        return BuildCommand((*argv, *no_tests, "test"), _environment(options))
    argv += ["-DskipTests=false", "-Dmaven.test.skip=false", "-Dmaven.test.failure.ignore=true"]
    argv += ["-DdisableXmlReport=false"]
    if goal is Goal.FETCH_FOR_TESTS:
        return BuildCommand((*argv, *_stub_jvm(options), "test"), _environment(options))
    env = _environment(options)
    agent = options.agent
    if agent.option and agent.by_variable:
        env["JAVA_TOOL_OPTIONS"] = agent.option
    elif agent.option:
        argv.append(f"-DargLine={' '.join(filter(None, (agent.arg_line, agent.option)))}")
    return BuildCommand((*argv, "test"), env)


def _stub_jvm(options: CommandOptions) -> tuple[str, ...]:
    return (f"-Djvm={options.stub_jvm}",) if options.stub_jvm else ()


def _gradle(goal: Goal, options: CommandOptions) -> BuildCommand:
    argv = ["bash", "gradlew"] if options.wrapper else ["gradle"]
    argv += ["--no-daemon", "--console=plain", "--continue", "-q"]
    argv += ["--offline"] if options.offline else []
    argv += [*options.repository, f"--init-script={options.init_script}"]
    level = f"1.{options.jdk}" if options.jdk < 9 else str(options.jdk)  # noqa: PLR2004 - named so since 9
    env = {**_environment(options), "CODETASTE_REPOSITORY": options.repository_url}
    if not options.wrapper:
        env["JAVA_HOME"] = options.gradle_home or options.java_home
        env |= {"CODETASTE_JAVA_HOME": options.java_home, "CODETASTE_JAVA_LEVEL": level}
    if goal is Goal.COMPILE:
        return BuildCommand((*argv, "testClasses"), env)
    if goal is Goal.FETCH_FOR_TESTS:
        # Its test task resolves nothing but the class path that compilation has resolved already.
        return BuildCommand((*argv, "codetasteResolve"), env)
    return BuildCommand((*argv, "test"), env | {"CODETASTE_AGENT": options.agent.option})


def _environment(options: CommandOptions) -> dict[str, str]:
    return {"JAVA_HOME": options.java_home}


INIT_SCRIPT = """\
// Compile and test with the JDK of the job, whichever Gradle runs on, and measure coverage by an agent.
def substitute = System.getenv('CODETASTE_REPOSITORY')
def redirect = { each ->
    // One repository stands for all others, which cannot be reached.
    def isRemote = each instanceof MavenArtifactRepository && each.url.scheme in ['http', 'https']
    if (substitute && isRemote) { each.url = substitute }
}
allprojects {
    repositories.all redirect
    buildscript.repositories.all redirect
    def javaHome = System.getenv('CODETASTE_JAVA_HOME')
    def agent = System.getenv('CODETASTE_AGENT')
    if (javaHome) plugins.withType(JavaPlugin) {
        sourceCompatibility = System.getenv('CODETASTE_JAVA_LEVEL')
        targetCompatibility = System.getenv('CODETASTE_JAVA_LEVEL')
    }
    if (javaHome) tasks.withType(JavaCompile) {
        options.fork = true
        options.forkOptions.javaHome = new File(javaHome)
    }
    tasks.withType(Test) {
        if (javaHome) { executable = new File(javaHome, 'bin/java').path }
        ignoreFailures = true
        if (agent) { jvmArgs agent }
        outputs.upToDateWhen { false }
    }
    // What only the test task needs is resolved while there is a network.
    task codetasteResolve {
        doLast {
            configurations.findAll { it.name in ['testRuntimeClasspath', 'testRuntime'] }.each {
                try { it.resolve() } catch (Exception problem) { println "not resolved: ${problem.message}" }
            }
        }
    }
}
"""
"""Given to Gradle with ``--init-script``."""
