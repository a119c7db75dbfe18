"""What tests of the gateway share with those of the models."""

from __future__ import annotations

import sys
from pathlib import Path

# The loopback provider of the room below is used here too.
sys.path.append(str(Path(__file__).parents[1] / "llm"))
