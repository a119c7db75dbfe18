"""The fixtures of the sandbox's tests; what they are made of is in the modules that end in ``_stage``."""

from __future__ import annotations

from boxes_stage import box, boxes, opening, token
from docker_stage import containers
from sandbox_stage import interpreter, shell, stage, unharmed

__all__ = ["box", "boxes", "containers", "interpreter", "opening", "shell", "stage", "token", "unharmed"]
