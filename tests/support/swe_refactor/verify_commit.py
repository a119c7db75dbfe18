"""Verify one commit of a clone by hand, and print what came out with its times.

usage: verify_commit.py CLONE COMMIT FOLDER TARGET... [--image NAME] [--socket PATH]

A target is SIDE:PATH,CLASS,METHOD,FIRST,LAST with the side "before" or "after". FOLDER keeps the dependencies
of the project: a second call needs no network, and its overhead over the build tool's own time is printed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import anyio

from codetaste.core.paths import cache_dir
from codetaste.environment.base_image.recipe import JAVA_IMAGE
from codetaste.java.build.coverage import CoverageTarget
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes
from codetaste.source.git import run_git
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.verify.request import VerificationRequest
from codetaste.swe_refactor.verify.settings import make_verify_context
from codetaste.swe_refactor.verify.verify import verify_candidate

say = partial(print, flush=True)


def target(text: str) -> CoverageTarget:
    path, class_name, name, first, last = text.split(",")
    return CoverageTarget(path, class_name, name, int(first), int(last))


async def main(options: argparse.Namespace) -> None:
    sides: dict[str, list[CoverageTarget]] = {"before": [], "after": []}
    for text in options.targets:
        side, _, rest = text.partition(":")
        sides[side].append(target(rest))
    repository = await open_repository(options.clone)
    found = await run_git("rev-parse", options.commit, f"{options.commit}^", git_dir=repository.git_dir)
    after, before = found.output.decode().split()
    config = SandboxConfig(engine="docker", socket=options.socket, image=options.image)
    request = VerificationRequest("by hand", before, after, tuple(sides["before"]), tuple(sides["after"]))
    async with open_sandboxes(config, options.folder / "run", "by-hand", say) as sandboxes:
        context = await make_verify_context(
            sandboxes,
            config,
            image=options.image,
            folder=options.folder / "project",
            cache=cache_dir(say),
        )
        result = await verify_candidate(context, repository, request)
    say(json.dumps({**asdict(result), "log": ""}, indent=1))
    say(result.log)
    overhead_s = result.total_s - result.tool_s - result.fetch_s
    say(f"{result.outcome}: {result.total_s:.1f} s in all, {result.fetch_s:.1f} s of fetching,")
    share = overhead_s / (result.tool_s or 1)
    say(f"{result.tool_s:.1f} s of the build tool, {overhead_s:.1f} s besides ({share:.1%})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("commit")
    parser.add_argument("folder", type=Path)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--image", default=JAVA_IMAGE)
    parser.add_argument("--socket", type=Path)
    anyio.run(main, parser.parse_args())
