#!/bin/sh
set -eu
packages=$CODETASTE_AGENT/node_modules/@anthropic-ai
if [ -f "$packages/claude-code/cli.js" ]; then
	export CLAUDE_CODE_REMOTE=true # do not start subagents in advance
	set -- "$CODETASTE_AGENT/node/bin/node" "$packages/claude-code/cli.js" "$@"
else
	set -- "$(echo "$packages"/claude-code-linux-*/claude)" "$@"
fi
[ -n "${CODETASTE_TOKEN-}" ] || exec "$@" # --version

# A token, not an API key: with a key, 2.0.76 sends one request, with the key, to api.anthropic.com.
export ANTHROPIC_BASE_URL="$CODETASTE_BASE_URL" ANTHROPIC_AUTH_TOKEN="$CODETASTE_TOKEN"
# Calls that would go to a second, smaller model go to this one.
export ANTHROPIC_SMALL_FAST_MODEL="$CODETASTE_MODEL" ANTHROPIC_DEFAULT_HAIKU_MODEL="$CODETASTE_MODEL"
export CLAUDE_CODE_SUBAGENT_MODEL="$CODETASTE_MODEL"
[ "$CODETASTE_OPTION_MAX_OUTPUT_TOKENS" = 0 ] || export CLAUDE_CODE_MAX_OUTPUT_TOKENS="$CODETASTE_OPTION_MAX_OUTPUT_TOKENS"

# The sandbox has no network, and a web search by the provider could find the golden commit.
exec "$@" -p --model "$CODETASTE_MODEL" --output-format stream-json --verbose --dangerously-skip-permissions \
	--disallowedTools WebSearch WebFetch
