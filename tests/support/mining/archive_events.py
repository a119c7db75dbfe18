"""Events in the shapes of the three schema eras of GH Archive, as dictionaries."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

_USER_LINKS = (
    "followers",
    "following{/other_user}",
    "gists{/gist_id}",
    "starred{/owner}{/repo}",
    "subscriptions",
    "orgs",
    "repos",
    "events{/privacy}",
    "received_events",
)
_REPOSITORY_LINKS = (
    "forks keys{/key_id} collaborators{/collaborator} teams hooks issues/events{/number} events "
    "assignees{/user} branches{/branch} tags git/blobs{/sha} git/tags{/sha} git/refs{/sha} git/trees{/sha} "
    "statuses/{sha} languages stargazers contributors subscribers subscription commits{/sha} "
    "git/commits{/sha} comments{/number} issues/comments{/number} contents/{+path} compare/{base}...{head} "
    "merges {archive_format}{/ref} downloads issues{/number} pulls{/number} milestones{/number} "
    "notifications{?since,all,participating} labels{/name} releases{/id} deployments"
)


@dataclass(frozen=True, slots=True)
class MergedChange:
    """What a test knows of one pull request; ``merged`` False: closed without a merge."""

    repository: str = "octo/widgets"
    number: int = 7
    title: str = "Restructure the parser"
    body: str = "Split it into modules."
    merged: bool = True
    golden: str = "b" * 40
    files: int = 60
    additions: int = 900
    deletions: int = 800
    stars: int = 120
    merged_at: str = "2023-04-05T06:07:08Z"
    licence: str | None = "MIT"


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def user(login: str) -> dict[str, Any]:
    """Return a user as the interface of version 3 describes one."""
    home, number = f"https://api.github.com/users/{login}", zlib.crc32(login.encode())
    links = {f"{link.split('{')[0]}_url": f"{home}/{link}" for link in _USER_LINKS}
    return {
        "login": login,
        "id": number,
        "node_id": f"MDQ6VXNlcj{number:x}=",
        "avatar_url": f"https://avatars.githubusercontent.com/u/{number}?v=4",
        "gravatar_id": "",
        "url": home,
        "html_url": f"https://github.com/{login}",
        **links,
        "type": "User",
        "site_admin": False,
    }


def repository(change: MergedChange) -> dict[str, Any]:
    """Return a repository as the interface of version 3 describes one."""
    home = f"https://api.github.com/repos/{change.repository}"
    owner, _, name = change.repository.partition("/")
    links = {f"link_{number}_url": f"{home}/{link}" for number, link in enumerate(_REPOSITORY_LINKS.split())}
    licence = None if change.licence is None else {"key": change.licence.lower(), "spdx_id": change.licence}
    return {
        "id": 7654321,
        "node_id": "MDEwOlJlcG9zaXRvcnk3NjU0MzIx",
        "name": name,
        "full_name": change.repository,
        "private": False,
        "owner": user(owner),
        "html_url": f"https://github.com/{change.repository}",
        "description": "Widgets for everyone, small and large",
        "fork": False,
        "url": home,
        **links,
        "created_at": "2012-01-02T03:04:05Z",
        "pushed_at": change.merged_at,
        "size": 43210,
        "stargazers_count": change.stars,
        "watchers_count": change.stars,
        "language": "Python",
        "forks_count": 31,
        "license": licence,
        "topics": ["widgets", "parser"],
        "default_branch": "main",
    }


def pull_request(change: MergedChange) -> dict[str, Any]:
    """Return a closed pull request as the interface of version 3 describes one."""
    home = f"https://api.github.com/repos/{change.repository}/pulls/{change.number}"
    author, reviewer = f"alice{change.golden[:5]}", f"bob{change.golden[5:9]}"
    branch = {"user": user(author), "repo": repository(change)}
    links = ("commits", "comments", "review_comments", "statuses", "issue", "html", "self")
    return {
        "url": home,
        "id": 108569017,
        "node_id": "MDExOlB1bGxSZXF1ZXN0MTA4NTY5MDE3",
        "html_url": f"https://github.com/{change.repository}/pull/{change.number}",
        "number": change.number,
        "state": "closed",
        "locked": False,
        "title": change.title,
        "user": user(author),
        "body": change.body,
        "created_at": "2023-04-01T00:00:00Z",
        "closed_at": change.merged_at,
        "merged_at": change.merged_at if change.merged else None,
        "merge_commit_sha": change.golden,
        "assignees": [user(reviewer)],
        "requested_reviewers": [user(f"carol{change.golden[9:12]}")],
        "labels": [{"name": "refactoring", "color": "ededed", "default": False}],
        "head": {"label": "alice:split", "ref": "split", "sha": _hash(change.golden), **branch},
        "base": {"label": "octo:main", "ref": "main", "sha": _hash(change.repository), **branch},
        "_links": {link: {"href": f"{home}/{link}"} for link in links},
        "author_association": "MEMBER",
        "merged": change.merged,
        "merged_by": user(reviewer) if change.merged else None,
        "commits": 12,
        "additions": change.additions,
        "deletions": change.deletions,
        "changed_files": change.files,
    }


def event_of_2013(change: MergedChange) -> dict[str, Any]:
    """Return the event of a closed pull request as it was before 2015."""
    owner, _, name = change.repository.partition("/")
    url = f"https://github.com/{change.repository}"
    return {
        "created_at": change.merged_at.replace("Z", "-07:00"),
        "payload": {"action": "closed", "number": change.number, "pull_request": pull_request(change)},
        "public": True,
        "type": "PullRequestEvent",
        "url": f"{url}/pull/{change.number}",
        "actor": "alice",
        "actor_attributes": {"login": "alice", "type": "User", "gravatar_id": "0" * 32},
        "repository": {
            "id": 7654321,
            "name": name,
            "owner": owner,
            "url": url,
            "watchers": change.stars,
            "stargazers": change.stars,
            "fork": False,
            "language": "Python",
            "master_branch": "master",
        },
    }


def _frame(change: MergedChange, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "5413098802",
        "type": "PullRequestEvent",
        "actor": {"id": 1234567, "login": "alice", "url": "https://api.github.com/users/alice"},
        "repo": {
            "id": 7654321,
            "name": change.repository,
            "url": f"https://api.github.com/repos/{change.repository}",
        },
        "payload": payload,
        "public": True,
        "created_at": change.merged_at,
    }


def event_of_2023(change: MergedChange, action: str = "closed") -> dict[str, Any]:
    """Return the event of a closed pull request as it was from 2015 to 2025-10-06."""
    payload = {"action": action, "number": change.number, "pull_request": pull_request(change)}
    return _frame(change, payload)


def event_of_2026(change: MergedChange) -> dict[str, Any]:
    """Return the event of a closed pull request as it is from 2025-10-07 on."""
    home = f"https://api.github.com/repos/{change.repository}"
    name = change.repository.partition("/")[2]
    branch = {"repo": {"id": 7654321, "url": home, "name": name}}
    trimmed = {
        "url": f"{home}/pulls/{change.number}",
        "id": 108569017,
        "number": change.number,
        "head": {"ref": "split", "sha": _hash(change.golden), **branch},
        "base": {"ref": "main", "sha": _hash(change.repository), **branch},
    }
    action = "merged" if change.merged else "closed"
    return _frame(change, {"action": action, "number": change.number, "pull_request": trimmed})


def other_event(number: int, repository_name: str = "octo/widgets") -> dict[str, Any]:
    """Return an event that is no pull request: three pushes to one star."""
    payload: dict[str, Any] = {"action": "started"}
    if number % 4:
        payload = {
            "push_id": number,
            "size": 2,
            "ref": "refs/heads/main",
            "head": _hash(f"{number}h"),
            "before": _hash(f"{number}b"),
            "commits": [
                {
                    "sha": _hash(f"{number}.{each}"),
                    "author": {"email": "1f8c1c@example.org", "name": "alice"},
                    "message": f"Fix widget {number}\n\nSays why {_hash(str(number))[:9]} was wrong.",
                    "distinct": True,
                    "url": f"https://api.github.com/repos/{repository_name}/commits/{_hash(str(number))}",
                }
                for each in range(2)
            ],
        }
    return {
        "id": str(20_000_000_000 + number),
        "type": "PushEvent" if number % 4 else "WatchEvent",
        "actor": {
            "id": number,
            "login": f"user{number % 1009}",
            "url": f"https://api.github.com/users/user{number % 1009}",
            "avatar_url": f"https://avatars.githubusercontent.com/u/{number}?",
        },
        "repo": {
            "id": 7654321,
            "name": repository_name,
            "url": f"https://api.github.com/repos/{repository_name}",
        },
        "payload": payload,
        "public": True,
        "created_at": "2023-04-05T06:07:08Z",
    }
