#!/bin/bash
# Applies the golden patch: a run of Harbor's agent "oracle" gets reward 1.
set -euo pipefail
cd /testbed
git -c safe.directory=/testbed apply --whitespace=nowarn /solution/golden.diff
