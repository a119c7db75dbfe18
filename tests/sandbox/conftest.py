"""The fixtures of the sandbox's tests; what they are made of is in the modules that end in ``_stage``."""

from __future__ import annotations

from support.sandbox.containment import interpreter, shell, stage, unharmed
from support.sandbox.docker_engine import containers
from support.sandbox.providers import box, boxes, opening, token

__all__ = ["box", "boxes", "containers", "interpreter", "opening", "shell", "stage", "token", "unharmed"]
