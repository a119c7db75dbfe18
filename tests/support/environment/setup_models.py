"""Scripted models of setup agents that make the environments of real projects, and of one that breaks code.

They see which project it is by the files that the first command lists.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

# A run imports this file by its path.
sys.path.insert(0, str(Path(__file__).parents[2]))

from codetaste.llm.messages import Message, Request, ToolResult
from support.environment.projects import CAST, COMMONS_CLI, FLAT, H11, HECK, Project
from support.environment.scripts import PYTHON, Scripts
from support.flows.trial_models import FINISH, Step, edit, next_step, shell, task_of

EXPLORE = shell("cd /testbed && git log --oneline && git show --stat HEAD | tail -n 3; id -un; ls -A")
RUN = "git clean -xdffq && sudo /scripts/setup_system.sh && . /scripts/setup_shell.sh && /scripts/run_tests"
TRY = [
    shell(f"cd /testbed && {RUN}", timeout_s=600.0),
    shell(
        f"cd /testbed && head=$(git rev-parse HEAD) && git checkout -q --detach HEAD~1 && ({RUN}); "
        'git checkout -q --detach "$head"',
        timeout_s=600.0,
    ),
]
"""Run the scripts on both commits."""
BY_MANIFEST = {
    "setup.py": H11,
    "package.json": FLAT,
    "go.mod": CAST,
    "Cargo.toml": HECK,
    "pom.xml": COMMONS_CLI,
}
"""The projects by a file at their top."""
TOOLCHAINS = {
    "python": ("python3 -m ensurepip --version", "python3-venv"),
    "javascript": ("npm --version", "nodejs npm"),
    "go": ("go version", "golang-go"),
    "rust": ("cargo --version", "rustc-web cargo-web"),
    "java": ("mvn --version", "default-jdk-headless maven"),
}
"""By language, what shows that its tools are there, and the packages of Debian that bring them."""
INSTALL = "sudo apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io"
FEEDBACK = "were run in a fresh copy of this container"
"""In the task of an agent whose scripts failed a gate."""


def project_of(request: Request) -> Project:
    """Return the project that the first command has shown."""
    for message in request.messages:
        for block in message.content:
            if isinstance(block, ToolResult):
                names = block.content.split()
                return next(project for name, project in BY_MANIFEST.items() if name in names)
    return H11  # not used: the first command has not run


def scripts_of(request: Request) -> Scripts:
    """Return the scripts for the project that the first command has shown."""
    return project_of(request).scripts


def bring_tools(language: str) -> Step:
    """Install the tools of a language, where the image has none."""
    check, packages = TOOLCHAINS[language]
    return shell(
        f"{check} || {{ sudo apt-get update -q && {INSTALL} {packages} && sudo apt-get clean; }}",
        timeout_s=600.0,
    )


def write(scripts: dict[str, str]) -> Step:
    """Write files into /scripts, all of them executable."""
    commands = [f"printf %s {shlex.quote(text)} > /scripts/{name}" for name, text in scripts.items()]
    return shell(" && ".join([*commands, "chmod 755 /scripts/*"]))


def steps_with(request: Request, scripts: dict[str, str]) -> list[Step]:
    """Explore, bring the tools, write ``scripts``, run them on both commits, finish."""
    return [EXPLORE, bring_tools(project_of(request).language), write(scripts), *TRY, FINISH]


def succeeds(request: Request) -> Message:
    """Writes scripts that pass the gates."""
    return next_step(request, steps_with(request, scripts_of(request).files))


def mends(request: Request) -> Message:
    """Writes a run_tests whose last line is no result, and corrects it after the feedback."""
    files = scripts_of(request).files
    if FEEDBACK not in task_of(request):
        files["run_tests"] = "#!/bin/bash\necho Tests are run later.\n"
    return next_step(request, steps_with(request, files))


def fails(request: Request) -> Message:
    """Writes scripts that end with an error, in every round."""
    files = {**scripts_of(request).files, "run_tests": "#!/bin/bash\nexit 3\n"}
    return next_step(request, steps_with(request, files))


def leaks(request: Request) -> Message:
    """Installs the Python package of HEAD outside of /testbed, and tests that copy on both commits."""
    install = shell(
        'python3 -m venv "$HOME/.testenv" && "$HOME/.testenv/bin/pip" install --quiet pytest==8.3.5 /testbed',
        timeout_s=600.0,
    )
    installed = PYTHON.run_tests.replace(" h11 ", " --pyargs h11 ").replace("cd /testbed", 'cd "$HOME"')
    explore, tools, *others = steps_with(request, {**PYTHON.files, "run_tests": installed})
    return next_step(request, [explore, tools, install, *others])


def explores_forever(request: Request) -> Message:
    """Looks at the code until a limit ends it."""
    return next_step(request, [EXPLORE])


def breaks(request: Request) -> Message:
    """Runs the tests, then changes a function so that some of them fail."""
    change = project_of(request).breakage
    steps = [
        shell("ls -A"),
        shell("/scripts/run_tests", timeout_s=600.0),
        edit(change.path, change.old, change.new),
        FINISH,
    ]
    return next_step(request, steps)
