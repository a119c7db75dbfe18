# Test runners in a place of their own, behind everything else on PATH: a project's own come first.
export UV_TOOL_DIR=/opt/test-tools/python UV_TOOL_BIN_DIR=/opt/test-tools/bin UV_PYTHON_DOWNLOADS=never
for tool in $PYTHON_TOOLS; do
    uv tool install -q --no-cache "$tool"
done
chown -R benchmarker:benchmarker /opt/test-tools
ls /opt/test-tools/bin
