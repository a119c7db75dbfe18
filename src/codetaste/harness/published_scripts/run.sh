#!/bin/sh
# Runs `run_agent` as the published harness did, with the model that codetaste serves; then shows how it says it ended.
export PATH="$CODETASTE_AGENT/bin:$CODETASTE_AGENT/node/bin:$PATH"
[ ! -d "$CODETASTE_AGENT/python" ] || export PYTHONPATH="$CODETASTE_AGENT/python" PATH="$CODETASTE_AGENT/python/bin:$PATH"
case $CODETASTE_PROTOCOL in
anthropic)
	export ANTHROPIC_BASE_URL="$CODETASTE_BASE_URL" ANTHROPIC_API_KEY="$CODETASTE_TOKEN"
	export ANTHROPIC_SMALL_FAST_MODEL="$CODETASTE_MODEL" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1
	;;
openai | openai-chat)
	export OPENAI_BASE_URL="$CODETASTE_BASE_URL/v1" OPENAI_API_KEY="$CODETASTE_TOKEN" CODEX_API_KEY="$CODETASTE_TOKEN"
	export OPENAI_MODEL="$CODETASTE_MODEL" OPENROUTER_API_KEY="$CODETASTE_TOKEN"
	;;
esac
[ -z "$CODETASTE_TIMEOUT_S" ] || export TIMEOUT="$CODETASTE_TIMEOUT_S"
export DESCRIPTION_TYPE="$CODETASTE_TRACK" MODE="$CODETASTE_MODE" PYTHONIOENCODING=utf-8 LC_ALL=C.UTF-8
cd /testbed
bash /agent/run_agent </dev/null
code=$?
# A newline in JSON is only ever space between its parts. Pretty or not, it becomes the last line, marked as ours.
if [ -f /output/inference_metadata.json ]; then
	printf '\n'
	head -c 1000000 /output/inference_metadata.json | tr '\n\r' '  ' | sed 's/^ *{/{"codetaste": "metadata", /'
	printf '\n'
fi
exit "$code"
