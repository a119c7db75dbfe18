"""``codetaste config schema``: print the JSON schema of config files."""

from __future__ import annotations

import json

from codetaste.console.command import command
from codetaste.console.streams import print_result
from codetaste.run.config import Config


@command
def schema() -> int:
    """Print the JSON schema of the models that read a config; earlier names of keys are not in it."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
    print_result(json.dumps({**found, "title": "codetaste config"}, indent=2))
    return 0
