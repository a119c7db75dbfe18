"""The fixtures of the sandbox's tests; what they are made of is in ``sandbox_stage.py``."""

from __future__ import annotations

from sandbox_stage import interpreter, shell, stage, unharmed

__all__ = ["interpreter", "shell", "stage", "unharmed"]
