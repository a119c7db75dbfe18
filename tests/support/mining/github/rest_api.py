"""GitHub's REST resources over the made-up world."""

from __future__ import annotations

import re
from typing import Any

from support.mining.github.world import Repository, World

Reply = tuple[int, Any]
_PATH = re.compile(r"/repos/([^/]+/[^/]+)(?:/(pulls|commits)/([^/]+))?")


def answer(world: World, path: str) -> Reply:
    """Return status and JSON value; a former name is answered with 301 and the address of the present one."""
    by_id = re.sub(r"^/repositories/(\d+)", lambda found: f"/repos/{_name_of(world, int(found[1]))}", path)
    parts = _PATH.fullmatch(by_id)
    repository = world.find(parts[1]) if parts else None
    if parts is None or repository is None:
        return 404, {"message": "Not Found", "status": "404"}
    if repository.forbidden:
        return 451, {"message": repository.forbidden, "block": {"reason": "dmca"}}
    if repository.name.lower() != parts[1].lower():
        number = list(world.repositories).index(repository.name.lower())
        rest = f"/{parts[2]}/{parts[3]}" if parts[2] else ""
        return 301, {"message": "Moved Permanently", "url": f"/repositories/{number}{rest}"}
    match parts[2]:
        case "pulls":
            return _pull(repository, int(parts[3]))
        case "commits":
            return _commit(world, repository, parts[3])
    return 200, _repository(repository)


def _name_of(world: World, number: int) -> str:
    return list(world.repositories.values())[number].name


def _repository(repository: Repository) -> dict[str, Any]:
    return {
        "id": 1,
        "full_name": repository.name,
        "stargazers_count": repository.stars,
        "fork": repository.fork,
        "license": {"key": "x", "spdx_id": repository.licence} if repository.licence else None,
    }


def _pull(repository: Repository, number: int) -> Reply:
    pull = repository.pulls.get(number)
    if pull is None:
        return 404, {"message": "Not Found", "status": "404"}
    return 200, {
        "number": number,
        "title": pull.title,
        "body": pull.body or None,
        "merged": pull.merged,
        "merged_at": "2025-11-01T12:00:05Z" if pull.merged else None,
        "merge_commit_sha": pull.merged_by,
        "base": {"ref": "main", "sha": "b" * 40, "repo": _repository(repository)},
        "changed_files": pull.files,
        "additions": pull.additions,
        "deletions": pull.deletions,
        "commits": len(pull.commits),
    }


def _commit(world: World, repository: Repository, hash_: str) -> Reply:
    commit = world.commit(repository, hash_)
    if commit is None:
        return 422, {"message": f"No commit found for SHA: {hash_}"}
    return 200, {
        "sha": commit.oid,
        "commit": {
            "message": commit.message,
            "author": {"name": "a", "date": commit.authored},
            "committer": {"name": "a", "date": commit.date},
        },
        "author": {"login": "a"},
        "stats": {"total": 1, "additions": commit.additions, "deletions": commit.deletions},
        "files": [{"filename": f"{number}.py"} for number in range(min(commit.files or 0, 300))],
    }
