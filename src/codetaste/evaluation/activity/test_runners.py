"""Common test runners and how they are invoked: data for ``test_commands.py``."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RUNNERS = _words("""
    pytest py.test pytest-3 tox nox nosetests nose2 stestr zope-testrunner behave jest vitest mocha _mocha ava
    jasmine phpunit simple-phpunit pest paratest codecept rspec cucumber ctest bats gotestsum ginkgo
    cargo-nextest busted prove elm-test
""")
"""Programs and scripts that run tests with any arguments."""
SUBCOMMANDS = {
    name: _words(words)
    for name, words in {
        "go": "test",
        "cargo": "test t nextest tarpaulin llvm-cov",
        "deno": "test",
        "playwright": "test",
        "cypress": "run",
        "karma": "start",
        "react-scripts": "test",
        "vue-cli-service": "test:unit test:e2e",
        "ng": "test",
        "bazel": "test coverage",
        "bazelisk": "test coverage",
        "buck": "test",
        "buck2": "test",
        "pants": "test",
        "dotnet": "test vstest",
        "swift": "test",
        "xcodebuild": "test",
        "flutter": "test",
        "dart": "test",
        "mix": "test",
        "rebar3": "eunit ct proper",
        "stack": "test",
        "cabal": "test v2-test",
        "dune": "test runtest",
        "zig": "test",
        "meson": "test",
        "lein": "test",
        "rails": "test spec",
        "hatch": "test",
        "artisan": "test",
        "manage": "test",
        "setup": "test pytest nosetests",
        "lerna": "test",
        "turbo": "test",
        "nx": "test",
    }.items()
}
"""Programs and scripts whose first non-option argument is a subcommand, with those that run tests."""
SCRIPT_RUNNERS = _words("lerna turbo nx hatch")
"""Programs that run scripts by name after one of ``SCRIPT_SUBCOMMANDS``."""
SCRIPT_SUBCOMMANDS = _words("run run-many affected")
TASK_RUNNERS = _words("make gmake ninja just task rake ant invoke inv poe gulp grunt sbt composer cmake")
"""Programs that take task names at any position."""
PACKAGE_MANAGERS = _words("npm yarn pnpm bun")
PACKAGE_OPTIONS = _words("--prefix -C --dir --cwd --filter -F -w --workspace --loglevel")
"""Options of package managers that take a value."""
MAVEN = _words("mvn mvnw mvnd")
MAVEN_PHASES = _words("test integration-test verify package install deploy surefire:test")
"""The phases that run tests: ``package`` and later ones come after ``test``."""
GRADLE = _words("gradle gradlew")
GRADLE_TASK = re.compile(r"(?:.*:)?(?:check|build|test\w*|\w+Tests?)")
INTERPRETER = re.compile(r"(?:python|pypy|node|ruby|php|perl|tsx|ts-node)[\d.]*")
TEST_MODULES = _words("pytest unittest tox nox nose nose2 py.test twisted.trial xdist stestr testtools.run")
"""Modules that run tests after ``python -m``."""
TASK = re.compile(
    r"(?:.*[-_:./])?(?:tests?|unittests?|pytest|specs?|runtests?|testOnly|testQuick)(?:[-_:. ].*)?"
)
"""Names of tasks or scripts that run tests: ``test``, ``test:unit``, ``unit-tests``."""
OTHER_TASK = re.compile(
    r"(?:build|compile|clean|lint|fmt|format|install|update|docs?|generate|list|setup)[-_:./].*"
)
"""Exceptions to ``TASK``: tasks that do something else with tests."""
REPOSITORY_SCRIPT = re.compile(r"run[-_]?(?:all[-_]?|unit[-_]?)?tests?|tests?-?runner")
"""A repository's own test script, by its name without suffix; that of the instances is ``run_tests``."""
SCRIPT_PATH = re.compile(
    r"(?:.*/)?(?:scripts?|bin|ci|tools?|hack|dev)/(?:unit-?)?tests?(?:\.\w+)?|(?:\./)?tests?\.sh"
)
SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")
NO_RUN_OPTIONS = _words(
    "--version --help --collect-only --co --listTests --no-run --dry-run --markers --fixtures --listenvs"
)
"""Options with which any program runs no tests."""
NO_RUN_OPTIONS_BY_PROGRAM = {
    name: _words(words)
    for name, words in {
        "go": "-c -list",
        "tox": "-l -a",
        "nox": "-l --list",
        "ctest": "-N --show-only",
        "make": "-n",
        "gmake": "-n",
        "gradle": "-m",
        "gradlew": "-m",
        "pytest": "-h",
    }.items()
}
