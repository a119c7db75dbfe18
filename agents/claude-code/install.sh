#!/bin/sh
# Before 2.1.110 Claude Code is a script for Node; later releases are one executable for each platform. Neither needs
# another package.
set -eu
cd "$CODETASTE_TREE"
case $CODETASTE_VERSION in
[01].* | 2.0.* | 2.1.? | 2.1.[1-9]? | 2.1.10?)
	npm install --omit=optional "@anthropic-ai/claude-code@$CODETASTE_VERSION"
	mkdir -p node/bin
	cp "$CODETASTE_NODE/bin/node" node/bin/node
	cd node_modules/@anthropic-ai/claude-code/vendor
	find . -mindepth 2 -maxdepth 2 -type d ! -name "$CODETASTE_ARCH-linux" -exec rm -rf {} +
	;;
*)
	npm install "@anthropic-ai/claude-code-linux-$CODETASTE_ARCH@$CODETASTE_VERSION"
	;;
esac
