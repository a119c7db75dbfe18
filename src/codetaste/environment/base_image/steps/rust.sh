# Rust: rustup's stable toolchain where it can be downloaded, else that of the distribution.
if command -v rustup >/dev/null; then
    if RUSTUP_HOME=/opt/rust rustup toolchain install stable --profile minimal -c rustfmt,clippy; then
        RUSTUP_HOME=/opt/rust rustup default stable
        chown -R benchmarker:benchmarker /opt/rust
    else
        apt-get remove -y -q rustup
        apt-get install -y -q --no-install-recommends rustc cargo
    fi
fi
cargo --version
