"""Secrets are found and not shown; invented keys of packages are not taken for them."""

from __future__ import annotations

import base64
import gzip

import pytest

from codetaste.environment.leak_search.content import WINDOW_BYTES, content_of
from codetaste.environment.leak_search.layers import search_config
from codetaste.environment.leak_search.report import CONFIG, LeakKind, LeakReport
from codetaste.environment.leak_search.search import LeakSearch
from codetaste.environment.leak_search.secrets import NO_SECRETS, Secrets, make_secrets

VALUE = "q7Xv-29fLmPz/kW3"
KEY = "sk-ant-api03-" + "Zk3vQ9xLw7TbN5yR2mHc8dJf4gPs6uKe"


def search(path: str, content: bytes, secrets: Secrets = NO_SECRETS) -> LeakReport:
    leaks = LeakSearch(None, secrets)
    leaks.begin_layer()
    leaks.search_file(path.encode(), content_of(content))
    leaks.end_layer("sha256:0")
    return leaks.report()


@pytest.mark.parametrize(
    "content",
    [
        VALUE.encode(),
        b"export KEY=" + VALUE.encode() + b"\n",
        *(b'{"auth": "' + base64.b64encode(b"u" * n + VALUE.encode() + b"x" * n) + b'"}' for n in range(4)),
        gzip.compress(b"token " + VALUE.encode(), mtime=0),
        b"x" * (WINDOW_BYTES - 7) + VALUE.encode() + b"x" * WINDOW_BYTES,
    ],
)
def test_value_of_a_secret_is_found_anywhere_and_not_shown(content: bytes) -> None:
    found = search("usr/lib/x", content, make_secrets({"API_KEY": VALUE, "EMPTY": "", "SHORT": "abc"}))
    assert {leak.kind for leak in found.leaks} == {LeakKind.SECRET}
    assert "API_KEY" in found.leaks[0].evidence
    assert VALUE not in str(found)
    assert found.left_out == {"a secret of fewer than 8 characters": 1}


@pytest.mark.parametrize(
    ("path", "content", "hits"),
    [
        ("home/agent/.profile", f"export ANTHROPIC_API_KEY={KEY}\n", 1),
        ("root/.git-credentials", "https://me:vQ9xLw7TbN5yR2@git.example.org\n", 1),
        ("etc/pip.conf", "index-url = https://${USER}:${PASSWORD}@index.invalid/\n", 0),
        ("tmp/log", "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lM6", 1),
        ("tmp/log", "ghp_" + "x" * 36, 0),
        ("home/agent/.codex/log", "ct-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lM6_-nPrU4", 1),
        ("home/agent/.aws/credentials", "AKIA" + "IOSFODNN7EXAMPLE", 0),
        ("usr/lib/python3/dist-packages/x/tests.py", KEY, 0),
        ("home/agent/app/node_modules/x/README.md", KEY, 0),
        ("testbed/tests/test_keys.py", KEY, 0),
    ],
)
def test_text_like_a_key_is_found_where_no_package_is(path: str, content: str, hits: int) -> None:
    found = search(path, content.encode())
    assert len(found.leaks) == hits
    assert not hits or content.strip() not in str(found)


def test_every_text_of_the_config_is_searched() -> None:
    config = {
        "Config": {"Env": ["PATH=/bin", f"TOKEN={KEY}"], "Labels": {"note": VALUE}},
        "history": [{"created_by": f"RUN echo {VALUE}"}],
    }
    leaks = LeakSearch(None, make_secrets({"API_KEY": VALUE}))
    search_config(leaks, config)
    found = leaks.report().leaks
    assert {(leak.layer, leak.path) for leak in found} == {
        (CONFIG, "Config.Env"),
        (CONFIG, "Config.Labels.note"),
        (CONFIG, "history.created_by"),
    }
