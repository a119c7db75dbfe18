"""Verify published instances by hand, and compare what builds and tests say with what is published.

usage: verify_published.py FILE CLONE FOLDER [--image NAME] [--socket PATH]

FOLDER keeps the dependencies of the project and the results: a second call does what is missing.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from rebuild import VERIFICATION, detection

from codetaste.core.concurrency import gather
from codetaste.core.paths import cache_dir
from codetaste.environment.base_image.recipe import JAVA_IMAGE
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.build.verified import verification_request, verified_instance
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.verify.settings import make_verify_context
from codetaste.swe_refactor.verify.verification import Verification
from codetaste.swe_refactor.verify.verify import verify_candidate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.refactorings.model import Refactoring
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.verify.settings import VerifyContext

say = partial(print, flush=True)
NAME = re.compile(r"([\w$]+)\(")


def named_detection(instance: RefactoringInstance) -> Refactoring:
    """Return the detection of an instance; its methods after have the names of the description."""
    found, names = detection(instance), NAME.findall(instance.description)
    order = names[::-1] if len(found.right) > 1 else names[1:]
    right = [
        replace(place, code_element=f"{name}()") for place, name in zip(found.right, order, strict=False)
    ]
    return replace(found, right=tuple(right))


def report(instance: RefactoringInstance, result: Verification) -> Iterator[str]:
    """Yield what is different in the keys that need builds."""
    ours = verified_instance(instance, result).document
    yield f"{instance.commit_id[:8]} {instance.type} {instance.method_name}: {result.outcome} {result.detail}"
    for key in VERIFICATION:
        old, new = instance.document.get(key), ours.get(key)
        yield f"    {key}: {'equal' if old == new else f'published {old!r}, here {new!r}'}"


async def verify(
    context: VerifyContext, repository: Repository, instance: RefactoringInstance, file: Path
) -> Verification:
    """Verify one instance, or read the result of an earlier call."""
    path = anyio.Path(file)
    if not await path.exists():
        request = await verification_request("by hand", instance, named_detection(instance), repository)
        result = await verify_candidate(context, repository, request)
        await path.write_text(json.dumps(result.to_json()))
    data: Any = json.loads(await path.read_text())
    return Verification.from_json(data)


async def main(options: argparse.Namespace) -> None:
    repository = await open_repository(options.clone)
    config = SandboxConfig(engine="docker", socket=options.socket, image=options.image)
    limiter = anyio.CapacityLimiter(2)
    async with open_sandboxes(config, options.folder / "run", "by-hand", say) as sandboxes:
        context = await make_verify_context(
            sandboxes, config, image=options.image, folder=options.folder / "project", cache=cache_dir(say)
        )

        async def one(instance: RefactoringInstance) -> None:
            file = options.folder / f"{instance.unique_id}.json"
            async with limiter:
                result = await verify(context, repository, instance, file)
            say("\n".join(report(instance, result)))

        await gather([partial(one, each) for each in read_instances(options.file)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("clone", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--image", default=JAVA_IMAGE)
    parser.add_argument("--socket", type=Path)
    anyio.run(main, parser.parse_args())
