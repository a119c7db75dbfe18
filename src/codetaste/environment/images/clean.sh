#!/bin/bash
# Remove from a sandbox what may hold code of its repository outside of /testbed, and traces of who worked in it.
# Run as root. Prints a line for each thing that it removes. What a project depends on stays: the scripts need it.
#
# variables, with one name a line, of the repository's own packages:
#   PYTHON_NAMES   normalised        NPM_NAMES      GO_MODULES      MAVEN_NAMES   group:artifact
# ONLY_TRACES=1 removes only logs, histories and transcripts: what the setup scripts made of R belongs to the image.
set -u
shopt -s nullglob dotglob
exec 2>&1 </dev/null

remove() { # remove WHAT PATH…
    local what=$1 path
    shift
    for path in "$@"; do
        if [[ -e $path || -L $path ]]; then
            printf '%s: %s\n' "$what" "$path"
            rm -rf --one-file-system -- "$path"
        fi
    done
}

listed() { # listed NAME LIST: whether a line of LIST is NAME
    [[ -n $1 && $'\n'$2$'\n' == *$'\n'"$1"$'\n'* ]]
}

normalised() { # normalised NAME: as Python compares names of packages
    sed -E 's/[-_.]+/-/g' <<<"${1,,}"
}

homes=(/root)
for home in /home/*; do
    [[ -d $home && ! -L $home ]] && homes+=("$home")
done
traces() { # of programs and people
    local home
    find /var/log -xdev -type f \( -name '*.gz' -o -name '*.old' -o -name '*.[0-9]' \) -delete 2>/dev/null
    find /var/log -xdev -type f -size +0 -exec truncate -s 0 -- {} + 2>/dev/null
    remove crash /core /core.[0-9]* /var/crash/*
    for home in "${homes[@]}"; do
        remove history "$home"/.*_history "$home"/.lesshst "$home"/.viminfo "$home"/.wget-hsts "$home"/.sudo_as_admin_successful
        remove transcript "$home"/.claude* "$home"/.codex "$home"/.qwen "$home"/.gemini "$home"/.aider* "$home"/.opencode \
            "$home"/.config/{claude,opencode,codex,goose} "$home"/.local/share/{claude,opencode,goose} \
            "$home"/.local/state/{claude,opencode,goose} "$home"/.cache/{claude-cli-nodejs,opencode}
        remove log "$home"/.npm/_logs "$home"/.cache/pip/log "$home"/.gradle/daemon "$home"/.pm2/logs "$home"/.cache/yarn/*.log
    done
}

python_packages() { # what pip, uv and setup.py have installed of the repository itself, and wheels of it
    local site info name egg home path
    for site in "${places[@]}"; do
        [[ $site == *-packages ]] || continue
        # Released packages have no such file: a project may depend on an earlier release of itself.
        for info in "$site"/*.dist-info/direct_url.json; do
            info=$(dirname "$info")
            name=$(normalised "$(basename "${info%-*}")")
            if listed "$name" "${PYTHON_NAMES-}" || grep -q 'file:///testbed' "$info/direct_url.json"; then
                printf 'python package: %s\n' "$info"
                uninstall "$site" "$info"
            fi
        done
        for egg in "$site"/*.egg-link "$site"/*.egg; do
            name=$(basename "${egg%.egg*}")
            listed "$(normalised "${name%%-[0-9]*}")" "${PYTHON_NAMES-}" && remove 'python package' "$egg"
        done
        [[ -f $site/easy-install.pth ]] && sed -i '\|/testbed|d' "$site/easy-install.pth"
    done
    for home in "${homes[@]}"; do
        while IFS= read -r -d '' path; do
            name=$(basename "$path")
            listed "$(normalised "${name%%-[0-9]*}")" "${PYTHON_NAMES-}" && remove wheel "$path"
        done < <(find "$home"/.cache/pip/wheels -type f -name '*.whl' -print0 2>/dev/null)
        remove 'uv cache' "$home"/.cache/uv/sdists-v*/{path,editable} "$home"/.cache/uv/builds-v*
        for path in "$home"/.cache/uv/archive-v*/*/*.dist-info; do
            name=$(basename "${path%-*}")
            if listed "$(normalised "$name")" "${PYTHON_NAMES-}" && [[ -f $path/direct_url.json || ! -s $path/INSTALLER ]]; then
                remove 'uv cache' "$(dirname "$path")"
            fi
        done
    done
}

uninstall() { # uninstall SITE INFO: remove the files that a package lists, with what Python compiled of them
    local site=$1 info=$2 file
    while IFS= read -r file; do
        file=${file%,*} && file=${file%,*} && file=${file#\"} && file=${file%\"}
        [[ -n $file && $file != /* ]] || continue
        rm -f -- "$site/$file"
        [[ $file != ..* ]] || continue
        if [[ $file == *.py ]]; then
            rm -f -- "$(dirname "$site/$file")/__pycache__/$(basename "$file" .py)".*.pyc
        fi
        (cd "$site" && rmdir --parents --ignore-fail-on-non-empty -- "$(dirname "$file")/__pycache__" 2>/dev/null)
        (cd "$site" && rmdir --parents --ignore-fail-on-non-empty -- "$(dirname "$file")" 2>/dev/null)
    done <"$info/RECORD"
    rm -rf --one-file-system -- "$info"
}

npm_packages() { # packages of the repository itself in caches of npm and yarn
    local home name entry integrity hex
    while IFS= read -r name; do
        [[ -n $name ]] || continue
        for home in "${homes[@]}"; do
            while IFS= read -r -d '' entry; do
                while IFS= read -r integrity; do
                    hex=$(base64 -d <<<"$integrity" 2>/dev/null | od -An -v -tx1 | tr -d ' \n')
                    [[ -n $hex ]] && remove 'npm cache' "$home/.npm/_cacache/content-v2/sha512/${hex:0:2}/${hex:2:2}/${hex:4}"
                done < <(grep -oE '"integrity":"sha512-[A-Za-z0-9+/=]+' "$entry" | sed 's/.*sha512-//')
                remove 'npm cache' "$entry"
            done < <(grep -rlZF -e "/$name/-/" -e "\"name\":\"$name\"" -- "$home/.npm/_cacache/index-v5" 2>/dev/null)
            remove 'yarn cache' "$home"/.cache/yarn/v*/npm-"${name//\//-}"-[0-9]* "$home"/.yarn/berry/cache/"${name//\//-}"-npm-*
        done
    done <<<"${NPM_NAMES-}"
}

go_modules() { # what Go has built of the repository itself: the names of its packages are in it
    local folder module path
    while IFS= read -r module; do
        [[ -n $module ]] || continue
        for folder in "${places[@]}"; do
            [[ $folder == */go-build ]] || continue
            printf 'go build cache of %s: %s\n' "$module" "$folder"
            grep -rlZF -- "$module" "$folder" 2>/dev/null | xargs -0r rm -f --
        done
        for folder in "${homes[@]}"; do
            while IFS= read -r -d '' path; do
                remove 'go program' "$path"
            done < <(grep -lZF -- "$module" "$folder"/go/bin/* 2>/dev/null)
        done
    done <<<"${GO_MODULES-}"
}

rust_targets() { # what cargo has built outside of the repository
    local path
    for path in "${places[@]}"; do
        [[ $path == */.rustc_info.json ]] && remove 'cargo target' "$(dirname "$path")"
    done
}

jvm_artefacts() { # artefacts of the repository itself, and outputs of builds; downloads of other projects stay
    local home name group artefact
    for home in "${homes[@]}"; do
        while IFS= read -r name; do
            [[ $name == *:* ]] || continue
            group=${name%%:*} artefact=${name#*:}
            remove 'maven artefact' "$home/.m2/repository/${group//.//}/$artefact"
            remove 'gradle artefact' "$home/.gradle/caches/modules-2/files-2.1/$group/$artefact"
        done <<<"${MAVEN_NAMES-}"
        remove 'maven build cache' "$home"/.m2/build-cache
        remove 'gradle cache' "$home"/.gradle/caches/{build-cache-*,transforms-*,jars-*} "$home"/.gradle/.tmp "$home"/.gradle/workers \
            "$home"/.gradle/caches/*/{transforms,scripts,scripts-remapped,groovy-dsl,kotlin-dsl,executionHistory,fileContent,fileHashes}
    done
}

traces
[[ ${ONLY_TRACES-} == 1 ]] && exit 0
mapfile -d '' -t places < <(
    find / -xdev \( -path /testbed -o -path /proc -o -path /sys -o -path /run -o -path /dev \) -prune -o \
        \( -type d \( -name site-packages -o -name dist-packages -o -name go-build \) -o -type f -name .rustc_info.json \) \
        -print0 2>/dev/null
)
python_packages
npm_packages
go_modules
rust_targets
jvm_artefacts
remove temporary /tmp/* /var/tmp/* /dev/shm/*
exit 0
