# The user "benchmarker" of the paper is the user of sandboxes, with their home. Images may have one already.
if id 1000 >/dev/null 2>&1; then
    old=$(id -un 1000)
    [ "$old" = benchmarker ] || usermod --login benchmarker "$old"
    usermod --home /home/agent --shell /bin/bash benchmarker
    group=$(getent group 1000 | cut -d: -f1)
    [ "$group" = benchmarker ] || groupmod --new-name benchmarker "$group"
else
    useradd --uid 1000 --user-group -M --home-dir /home/agent --shell /bin/bash benchmarker
fi
mkdir -p /testbed /task_description /output /home/agent /scripts /opt/nvm /opt/rust /opt/uv-python /opt/test-tools
chown benchmarker:benchmarker /testbed /task_description /output /home/agent
ln -sfnT /home/agent /home/benchmarker

# Programs under sudo use the same proxy, certificates, registries and tools.
cat >/etc/sudoers.d/benchmarker <<SUDOERS
benchmarker ALL=(ALL) NOPASSWD: ALL
Defaults secure_path = "$IMAGE_PATH"
Defaults env_keep += "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_USE_ENV_PROXY"
Defaults env_keep += "MAVEN_OPTS GRADLE_OPTS SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT"
Defaults env_keep += "NODE_EXTRA_CA_CERTS CARGO_HTTP_CAINFO GIT_SSL_CAINFO PIP_INDEX_URL PIP_EXTRA_INDEX_URL"
Defaults env_keep += "UV_DEFAULT_INDEX UV_INDEX NPM_CONFIG_REGISTRY GOPROXY GOSUMDB DEBIAN_FRONTEND"
Defaults env_keep += "NVM_DIR RUSTUP_HOME UV_PYTHON_INSTALL_DIR JAVA_HOME LANG"
Defaults !fqdn
SUDOERS
chmod 0440 /etc/sudoers.d/benchmarker
visudo -c -q
