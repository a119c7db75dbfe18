"""Fixtures of the sandbox tests, defined in ``support.sandbox``."""

from __future__ import annotations

from support.sandbox.containment import find_python, host_folders, host_unchanged, shell
from support.sandbox.docker_engine import docker_provider
from support.sandbox.providers import provider, provider_context, sandbox, token

__all__ = [
    "docker_provider",
    "find_python",
    "host_folders",
    "host_unchanged",
    "provider",
    "provider_context",
    "sandbox",
    "shell",
    "token",
]
