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
0.?.* | 0.[1-9]?.*) set -- -c tools.web_search=false ;;
*) set -- --disable plugins --disable apps --ephemeral -c analytics.enabled=false -c 'web_search="disabled"' ;;
esac
# A provider entry of its own: with the built-in one, later versions first try the address of OpenAI and a web socket.
# The gateway retries the provider itself, so codex must not.
exec "$codex" exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check "$@" \
	-m "$CODETASTE_MODEL" -c "model_reasoning_effort=\"$CODETASTE_OPTION_REASONING_EFFORT\"" \
	-c check_for_update_on_startup=false -c 'model_provider="codetaste"' \
	-c "model_providers.codetaste={name=\"codetaste\",base_url=\"$CODETASTE_BASE_URL/v1\",env_key=\"CODETASTE_TOKEN\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0,stream_idle_timeout_ms=3600000}" \
	-
