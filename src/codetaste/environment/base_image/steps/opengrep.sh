# The engine of this codetaste, unpacked once: its program unpacks itself below a cache folder.
mkdir -p /opt/opengrep/cache
cp "$OPENGREP" /opt/opengrep/opengrep
chmod 755 /opt/opengrep/opengrep
cat >/usr/local/bin/opengrep <<'WRAPPER'
#!/bin/sh
XDG_CACHE_HOME=/opt/opengrep/cache exec /opt/opengrep/opengrep "$@"
WRAPPER
chmod 755 /usr/local/bin/opengrep
opengrep --version
chmod -R go+rX /opt/opengrep
