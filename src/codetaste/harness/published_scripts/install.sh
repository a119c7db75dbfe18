#!/bin/sh
# What `sudo bash setup_system.sh` did in the published harness, but for root: what npm and pip install goes into the tree.
set -eu
export NPM_CONFIG_PREFIX="$CODETASTE_TREE" PIP_TARGET="$CODETASTE_TREE/python" PIP_BREAK_SYSTEM_PACKAGES=1
mkdir -p "$CODETASTE_TREE/bin" "$CODETASTE_TREE/node/bin"
export PATH="$CODETASTE_TREE/bin:$PATH"
cd "$CODETASTE_ADAPTER"
bash setup_system.sh || {
	code=$?
	echo "setup_system.sh failed ($code); there is no root here: what needs it belongs into the instance's image" >&2
	exit "$code"
}
cp "$CODETASTE_NODE/bin/node" "$CODETASTE_TREE/node/bin/node"
