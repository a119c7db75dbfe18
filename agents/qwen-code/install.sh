#!/bin/sh
# The optional packages are for terminals, images and sound: not needed without a user.
set -eu
cd "$CODETASTE_TREE"
case $CODETASTE_VERSION in
0.[0-9].*) set -- tiktoken@1.0.22 ;; # the package would install the latest
*) set -- ;;
esac
npm install --omit=optional "@qwen-code/qwen-code@$CODETASTE_VERSION" "$@"
mkdir -p node/bin
cp "$CODETASTE_NODE/bin/node" node/bin/node
cd node_modules/@qwen-code/qwen-code/vendor/ripgrep
find . -mindepth 1 -maxdepth 1 -type d ! -name "$CODETASTE_ARCH-linux" -exec rm -rf {} +
