#!/bin/sh
# Codex is an executable; before 0.99 its package contains those of all platforms.
set -eu
cd "$CODETASTE_TREE"
case $CODETASTE_VERSION in
0.?.* | 0.[1-8]?.* | 0.9[0-8].*)
	npm install "@openai/codex@$CODETASTE_VERSION"
	;;
*)
	npm install "codex@npm:@openai/codex@$CODETASTE_VERSION-linux-$CODETASTE_ARCH"
	;;
esac
case $CODETASTE_ARCH in arm64) machine=aarch64 ;; *) machine=x86_64 ;; esac
vendor=$(find node_modules -type d -name vendor | head -n 1)
[ -n "$vendor" ] || { echo "the package of codex $CODETASTE_VERSION contains no folder named vendor" >&2; exit 1; }
mv "$vendor/$machine-unknown-linux-musl" codex
rm -rf node_modules
rm -rf codex/codex-resources/voice
