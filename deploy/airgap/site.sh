# shellcheck shell=bash
# What this machine says about its surroundings: where Debian packages and Python packages come from, which
# certificate authorities it trusts, which proxies it uses. Sourced by the scripts beside it; nothing here names a host.

SUITE=bookworm
CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt

# Lines "URI RELEASE" for the Debian archives of $SUITE that this machine's apt uses, the main one first.
site_debian_archives() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR $SUITE"
        return
    fi
    # shellcheck disable=SC2016  # apt's own names
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v suite="$SUITE" '
            $3 == "main" && $2 == suite { main[++n] = $1 " " $2 }
            $3 == "main" && ($2 == suite "-updates" || $2 == suite "-security") { more[++m] = $1 " " $2 }
            END { for (i = 1; i <= n; i++) print main[i]; for (i = 1; i <= m; i++) print more[i] }' |
        awk '!seen[$0]++'
}

# How this machine's apt fetches (proxies, checks of dates), as an apt.conf.
site_apt_conf() {
    apt-config dump | grep -E '^Acquire::(Check-|Retries|http::|https::|http |https )' | grep -v '""' || true
}

# Where this machine's pip fetches from, as a pip.conf. Indexes on the machine's own disk are left out: an image
# cannot see them.
site_pip_conf() {
    local settings key value
    settings=$(python3 -m pip config list 2>/dev/null || pip config list 2>/dev/null || true)
    echo "[global]"
    echo "cert = $CA_BUNDLE"
    echo "disable-pip-version-check = true"
    echo "root-user-action = ignore"
    for key in index-url extra-index-url trusted-host proxy default-timeout; do
        # The environment's line wins over the files', as in pip itself.
        value=$({ grep -E "^(global|install)\.$key=" <<<"$settings"; grep -E "^:env:\.$key=" <<<"$settings"; } |
            tail -n 1 | cut -d= -f2- | tr -d "'" | sed 's/\\n/ /g' | tr ' ' '\n' | grep -v '^file:\|^/' | xargs || true)
        [ -z "$value" ] || echo "$key = $value"
    done
}

# Flags that let `docker build` reach what this machine reaches, one word per line.
site_build_flags() {
    local name
    printf '%s\n' --network host
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || printf '%s\n' --build-arg "$name=${!name}"
    done
}
