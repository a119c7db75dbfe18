#!/bin/sh
# The executable itself, without its Node launcher, which exits with 0 after SIGTERM.
set -eu
home=$CODETASTE_AGENT/codex
if [ -x "$home/bin/codex" ]; then
	codex=$home/bin/codex path=$home/codex-path
else
	codex=$home/codex/codex path=$home/path
fi
[ -n "${CODETASTE_TOKEN-}" ] || exec "$codex" "$@" # --version

export PATH="$path:$PATH" CODETASTE_TOKEN
case $CODETASTE_VERSION in
0.?.* | 0.[1-8]?.* | 0.9[0-8].*) set -- -c tools.web_search=false ;;
*) set -- --ephemeral -c analytics.enabled=false ;;
esac
# Not --disable, which refuses the names of features that a release does not have.
set -- "$@" -c features.plugins=false -c features.apps=false -c 'web_search="disabled"'
# A provider entry of its own: with the built-in one, later versions first try the address of OpenAI and a web socket.
# The gateway retries the provider itself, so codex must not, except for a reply that was cut: the gateway cannot take
# back what it has sent of it.
exec "$codex" exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check "$@" \
	-m "$CODETASTE_MODEL" -c "model_reasoning_effort=\"$CODETASTE_OPTION_REASONING_EFFORT\"" \
	-c check_for_update_on_startup=false -c 'model_provider="codetaste"' \
	-c "model_providers.codetaste={name=\"codetaste\",base_url=\"$CODETASTE_BASE_URL/v1\",env_key=\"CODETASTE_TOKEN\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=2,stream_idle_timeout_ms=3600000}" \
	-
