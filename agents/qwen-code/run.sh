#!/bin/sh
# cli.js itself, without a launcher, whose child process survives SIGTERM.
set -eu
set -- "$CODETASTE_AGENT/node/bin/node" --expose-gc --max-old-space-size=4096 --require "$CODETASTE_AGENT/adapter/userinfo.cjs" \
	"$CODETASTE_AGENT/node_modules/@qwen-code/qwen-code/cli.js" "$@"
[ -n "${CODETASTE_TOKEN-}" ] || exec "$@" # --version

mkdir -p "$HOME/.qwen"
cat >"$HOME/.qwen/settings.json" <<'SETTINGS'
{
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "model": {"generationConfig": {"maxRetries": 0, "timeout": 3600000}}
}
SETTINGS
export OPENAI_BASE_URL="$CODETASTE_BASE_URL/v1" OPENAI_API_KEY="$CODETASTE_TOKEN" OPENAI_MODEL="$CODETASTE_MODEL"
# It sends its own requests through HTTPS_PROXY, whatever NO_PROXY says: only the commands that it runs get these
# variables, by the file that a non-interactive bash reads.
if export -p | grep -i '^export [a-z]*_proxy=' >"$HOME/.qwen/proxies.sh"; then
	export BASH_ENV="$HOME/.qwen/proxies.sh"
	unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy
fi
[ "$CODETASTE_OPTION_MAX_SESSION_TURNS" = -1 ] || set -- "$@" --max-session-turns "$CODETASTE_OPTION_MAX_SESSION_TURNS"
# Its file tools may use its working directory and these folders; plans are written to /output.
exec "$@" --include-directories /output,/task_description --auth-type openai -m "$CODETASTE_MODEL" --yolo --output-format stream-json
