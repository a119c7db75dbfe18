# Go from the module that the Go module proxy has of each toolchain, checked by the sum of its checksum database.
case $(uname -m) in
x86_64) module=golang.org/toolchain@v0.0.1-go$GO_VERSION.linux-amd64 expected=$GO_X64_SUM ;;
*) echo "there is no pinned Go for $(uname -m)" && exit 1 ;;
esac
proxy=$(printf %s "$GOPROXY" | tr ',|' '\n\n' | grep -m1 ://) ||
    { echo "the Go module proxy is not known: install go on the host, or set GOPROXY" && exit 1; }
curl -sSfL --retry 5 -o /tmp/go.zip "${proxy%/}/${module%%@*}/@v/${module#*@}.zip"
mkdir /tmp/go
unzip -q /tmp/go.zip -d /tmp/go
cd /tmp/go
# The sum of a module: of the sorted list of the sums of its files.
found=$(find "$module" -type f | LC_ALL=C sort | xargs -d '\n' sha256sum | openssl dgst -sha256 -binary | base64)
[ "$found" = "$expected" ] || { echo "Go $GO_VERSION: its sum is $found, not $expected" && exit 1; }
rm -rf /usr/local/go
mv "$module" /usr/local/go
chmod -R go+rX /usr/local/go
chmod +x /usr/local/go/bin/* /usr/local/go/pkg/tool/*/*
cd /
rm -rf /tmp/go /tmp/go.zip
/usr/local/go/bin/go version
