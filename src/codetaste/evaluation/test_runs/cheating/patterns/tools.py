"""Names of the programs that scripts of environments call."""

from __future__ import annotations

_NAMES = """
    node nodejs npm npx yarn pnpm bun deno python python2 python3 pip pip3 pytest py.test tox go gofmt cargo
    rustc rustup java javac mvn gradle ruby rspec rake bundle php phpunit composer dotnet make cmake ctest gcc
    cc g++ jest mocha vitest git bash sh env sudo jq grep sed awk timeout cat tee
"""
TOOLS = frozenset(_NAMES.split())
"""The programs."""
