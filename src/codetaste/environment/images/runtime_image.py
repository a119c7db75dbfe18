"""Build the runtime image of an instance: R in /testbed, set up once, and nothing of R∘X* (CodeTaste §3.3).

The image is made from the setup image in a fresh sandbox that never has R∘X*. The variables that
``setup_shell.sh`` sets are variables of the image, so that every program in it finds what the tests find.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from codetaste.core.text import printable
from codetaste.environment.images.clean import REPOSITORY_FOLDERS, clean_sandbox
from codetaste.environment.images.git_check import (
    check_other_repositories,
    check_testbed,
    scrub_testbed,
)
from codetaste.environment.images.names import KEY_LABEL, content_key
from codetaste.environment.leak_search.image import search_image
from codetaste.environment.scripts import SCRIPTS
from codetaste.environment.system_services import system_services
from codetaste.errors import SandboxError
from codetaste.sandbox.base import OUTPUT, TASK, CommandLimits, Privileges
from codetaste.sandbox.docker.archive import put_as_root
from codetaste.sandbox.docker.commit import finish_image
from codetaste.sandbox.docker.images import find_image, forget_image, remove_image, tag_image
from codetaste.sandbox.docker.provider import DockerSandboxProvider, commit_sandbox
from codetaste.sandbox.provider import sandbox_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.environment.leak_search.image import LeakTerms
    from codetaste.environment.project import ProjectNames
    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.sandbox.base import Egress, Sandbox, SandboxProvider
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.sandbox.docker.engine import ContainerEngine

VERSION = 2
"""Increment it when a change here changes the images."""
_KIND = "runtime"
TESTBED_LABEL = "codetaste.testbed"
"""The label of an image with the only commit of its testbed."""
_CLEAN_S, _COMMIT_S = 300.0, 1800.0
_LOG_CHARS = 8_000
_MAX_ENV_BYTES = 256 * 1024
_VALUE = re.compile(r'[^"\\$\x00-\x1f\x7f]*')
"""What can be the value of a variable of an image."""
_OWN_VARIABLES = {"PWD", "OLDPWD", "SHLVL", "_", "CODETASTE_COMMAND", "BASH_ENV", "TMPDIR", "HOME"}
"""Variables that a shell sets for itself, and those of the sandbox."""

# The environment before and after, and between them what the setup writes is on standard error.
_SETUP = """
cd /testbed || exit 125
git clean -xdffq >&2 || exit 125
if [ -n "$1" ]; then /scripts/setup_system.sh >&2 || exit 126; fi
shift $#
env -0 | base64 -w 0
printf '\\n'
source /scripts/setup_shell.sh >&2 && { env -0 | base64 -w 0; printf '\\n'; exit 0; }
"""
Testbed: TypeAlias = Callable[[], AsyncIterable[bytes]]
"""Gives the archive that fills /testbed with R."""


@dataclass(frozen=True, slots=True)
class RuntimeRecipe:
    """What a runtime image is made from.

    Attributes:
        job: key of the job, for labels.
        name: of the image.
        setup_image: id of the image that the scripts run in.
        scripts: the scripts.
        testbed_commit: the commit of R in the testbed.
        privileges: what the scripts need.
        egress: what the setup reaches.
        within_s: time limit of the setup, seconds.
        terms: what must not be in the image: the golden state, and secrets.
        names: of the repository's own packages, which are removed from caches.
        trusted_layers: ids of layers that are not searched: those of the base image.
    """

    job: str
    name: str
    setup_image: str
    scripts: EnvironmentScripts
    testbed_commit: str
    privileges: Privileges
    egress: Egress
    within_s: float
    terms: LeakTerms
    names: ProjectNames = field(default_factory=dict)
    trusted_layers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The hash of all that decides the content of the image."""
        return content_key(
            _KIND,
            version=VERSION,
            setup_image=self.setup_image,
            scripts=self.scripts.digest,
            testbed=self.testbed_commit,
            privileges=self.privileges.value,
            golden="" if self.terms.golden is None else self.terms.golden.commit,
        )


@dataclass(frozen=True, slots=True)
class RuntimeImage:
    """A runtime image; without one, ``problem`` says why. ``notes`` say what was not searched for leaks."""

    image_id: str
    key: str
    problem: str = ""
    notes: tuple[str, ...] = ()


async def build_runtime_image(
    sandboxes: SandboxProvider, config: SandboxConfig, recipe: RuntimeRecipe, testbed: Testbed
) -> RuntimeImage:
    """Build the image, or return the one with the same key.

    Raises:
        SandboxError: no sandbox could be opened, or committed.
    """
    if not isinstance(sandboxes, DockerSandboxProvider):
        raise SandboxError("a runtime image needs a container engine")
    key = recipe.key
    if found := await find_image(sandboxes.engine, _KIND, KEY_LABEL, key):
        # More may be known that must not be in it than when it was made: keys, and what keys look like.
        problem, notes = await _search(sandboxes.engine, found, recipe)
        if problem:
            await forget_image(sandboxes.engine, recipe.name)
            return RuntimeImage("", key, problem)
        await tag_image(sandboxes.engine, found, recipe.name)  # another image may have taken the name since
        return RuntimeImage(found, key, notes=notes)
    # The host needs root to write /scripts and to clean; what the scripts get is another matter.
    privileges = Privileges.SYSTEM if recipe.privileges is Privileges.NONE else recipe.privileges
    spec = sandbox_spec(
        config,
        recipe.job,
        image=recipe.setup_image,
        privileges=privileges,
        egress=recipe.egress,
        lifetime_s=recipe.within_s + _CLEAN_S + _COMMIT_S,
    )
    async with sandboxes.open(spec) as sandbox:
        await clean_sandbox(sandbox, recipe.names, empty=(*REPOSITORY_FOLDERS, SCRIPTS))
        await sandbox.put(testbed())
        await put_as_root(sandbox, recipe.scripts.archive(), "/")
        variables, problem = await _set_up(sandbox, recipe)
        problem = problem or await _harden(sandbox, recipe)
        if problem:
            return RuntimeImage("", key, problem)
        labels = {KEY_LABEL: key, TESTBED_LABEL: recipe.testbed_commit}
        instructions = ("WORKDIR /testbed", "USER 1000:1000", 'CMD ["/bin/bash"]')
        draft = f"{recipe.name}:draft-{secrets.token_hex(6)}"  # another process may build the same
        await commit_sandbox(
            sandbox,
            draft,
            _KIND,
            labels,
            variables,
            instructions=instructions,
            draft=True,
            within_s=_COMMIT_S,
        )
    return await _search_and_finish(sandboxes.engine, draft, recipe, labels)


async def _harden(sandbox: Sandbox, recipe: RuntimeRecipe) -> str:
    """Remove what the setup left; return what a repository has that it must not have, "" for nothing.

    Temporary files stay: of R alone, and scripts may look for what they have put there.
    """
    await scrub_testbed(sandbox)
    golden = recipe.terms.golden
    ids = [] if golden is None else [identity.hex() for identity in golden.objects]
    findings = [
        *await check_testbed(sandbox, recipe.testbed_commit, ids),
        *await check_other_repositories(sandbox, ids),
    ]
    await clean_sandbox(sandbox, recipe.names, empty=(TASK, OUTPUT), only_traces=True)
    return f"the image would leak: {findings[0]}" if findings else ""


async def _search_and_finish(
    engine: ContainerEngine, draft: str, recipe: RuntimeRecipe, labels: Mapping[str, str]
) -> RuntimeImage:
    """Search a draft for what must not be in it; make an image of it if there is nothing."""
    problem, notes = await _search(engine, draft, recipe)
    if problem:
        await remove_image(engine, draft)
        return RuntimeImage("", recipe.key, problem)
    ident = await finish_image(engine, draft, recipe.name, labels)
    return RuntimeImage(ident, recipe.key, notes=notes)


async def _search(engine: ContainerEngine, image: str, recipe: RuntimeRecipe) -> tuple[str, tuple[str, ...]]:
    """Return what an image has that it must not have, "" for nothing, and what was not searched."""
    report = await search_image(engine, image, recipe.terms, leave_out=recipe.trusted_layers)
    problem = "" if report.is_clean else f"the image would leak: {report}"
    return problem, tuple(map(str, report.not_searched))


async def _set_up(sandbox: Sandbox, recipe: RuntimeRecipe) -> tuple[dict[str, str], str]:
    """Run the setup scripts once; return the variables that they set, and the problem, "" if they succeed."""
    limits = CommandLimits(recipe.within_s, 2 * _MAX_ENV_BYTES)
    as_user = "1" if recipe.privileges is Privileges.NONE else ""
    async with system_services(sandbox, recipe.privileges, recipe.within_s) as problem:
        if problem:
            return {}, problem
        done = await sandbox.run(["/bin/bash", "-c", _SETUP, "codetaste", as_user], limits=limits)
    lines = done.stdout.split(b"\n")
    if done.exit_code != 0 or len(lines) < 2:  # noqa: PLR2004 - before and after
        return {}, _problem(f"{SCRIPTS}/setup_shell.sh", done.exit_code, done.stderr)
    before, after = (_variables(line) for line in lines[:2])
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return {name: value for name, value in changed.items() if name not in _OWN_VARIABLES}, ""


def _variables(encoded: bytes) -> dict[str, str]:
    entries = base64.b64decode(encoded).split(b"\0")
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in entries if b"=" in entry)
    # What cannot be a variable of an image, such as a shell function, is left out.
    return {name: value for name, _, value in pairs if name.isidentifier() and _VALUE.fullmatch(value)}


def _problem(script: str, code: int | None, stderr: bytes) -> str:
    how = "did not end in time" if code is None else f"ended with exit code {code}"
    last = printable(" ".join(stderr.decode(errors="replace")[-_LOG_CHARS:].split())[-300:])
    return f"{script} {how}: {last}" if last else f"{script} {how}"
