# cargo-nextest, compiled with little optimisation: it spends its time in the tests that it runs.
export CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=/tmp/cargo/target CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 CARGO_PROFILE_RELEASE_DEBUG=0
cargo install -q --locked --root /tmp/nextest --no-default-features --features default-no-update \
    "cargo-nextest@$NEXTEST_VERSION"
install -m 755 /tmp/nextest/bin/cargo-nextest /usr/local/bin/cargo-nextest
strip /usr/local/bin/cargo-nextest
rm -rf /tmp/cargo /tmp/nextest
cargo nextest --version
