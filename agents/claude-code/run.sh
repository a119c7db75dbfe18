#!/bin/sh
set -eu
packages=$CODETASTE_AGENT/node_modules/@anthropic-ai
if [ -f "$packages/claude-code/cli.js" ]; then
	export CLAUDE_CODE_REMOTE=true # no warm-up of subagents that nobody calls
	set -- "$CODETASTE_AGENT/node/bin/node" "$packages/claude-code/cli.js" "$@"
else
	set -- "$(echo "$packages"/claude-code-linux-*/claude)" "$@"
fi
[ -n "${CODETASTE_TOKEN-}" ] || exec "$@" # --version

# As a token and not as an API key: with a key, 2.0.76 calls its maker once, and shows him the key.
export ANTHROPIC_BASE_URL="$CODETASTE_BASE_URL" ANTHROPIC_AUTH_TOKEN="$CODETASTE_TOKEN"
# Whatever it asks a second model, it asks this one.
export ANTHROPIC_SMALL_FAST_MODEL="$CODETASTE_MODEL" ANTHROPIC_DEFAULT_HAIKU_MODEL="$CODETASTE_MODEL"
export CLAUDE_CODE_SUBAGENT_MODEL="$CODETASTE_MODEL"
[ "$CODETASTE_OPTION_MAX_OUTPUT_TOKENS" = 0 ] || export CLAUDE_CODE_MAX_OUTPUT_TOKENS="$CODETASTE_OPTION_MAX_OUTPUT_TOKENS"

# There is no network, and a search by the provider would find what the task is measured against.
exec "$@" -p --model "$CODETASTE_MODEL" --output-format stream-json --verbose --dangerously-skip-permissions \
	--disallowedTools WebSearch WebFetch
