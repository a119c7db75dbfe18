# uv, from its wheel.
options=
python3 -m pip install --help | grep -q break-system-packages && options=--break-system-packages
python3 -m pip install -q --root-user-action=ignore --no-cache-dir $options --no-deps "uv==$UV_VERSION"
uv --version
