# The Python versions of the paper; uv downloads them.
export UV_PYTHON_INSTALL_DIR=/opt/uv-python
# shellcheck disable=SC2086 # a list of versions
uv python install --no-bin --no-cache $PYTHON_VERSIONS
