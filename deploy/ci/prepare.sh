#!/bin/sh
# Make a bare Debian 12 machine ready to run every test: packages by apt, and a container engine that answers.
# Needs root. Safe to run again: what is there stays as it is.
set -eu

packages="ca-certificates chromium debootstrap docker.io docker-compose fonts-dejavu-core fonts-noto-cjk git iperf3
    iproute2 iptables make openssh-client postgresql procps prometheus python3 python3-pip python3-venv qemu-user-static
    tmux wireguard-go"
log=/var/log/dockerd.log
engine_deadline_s=60

say() { echo "prepare: $*"; }
fail() { echo "prepare: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "needs root"

# Asks dpkg, not PATH: a stray client in /usr/local/bin does not mean that the engine is installed.
missing=""
for package in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    say "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
    # Debian starts what it installs; tests start servers of their own.
    case "$missing" in *prometheus*) [ ! -d /run/systemd/system ] || systemctl disable --quiet --now prometheus ;; esac
fi

# Debian's own client, which fits Debian's engine.
docker=/usr/bin/docker
[ -x "$docker" ] || docker=docker
engine_answers() { "$docker" version --format '{{.Server.Version}}' >/dev/null 2>&1; }

if engine_answers; then
    say "a container engine answers already"
    exit 0
fi

say "starting dockerd (log: $log)"
setsid nohup /usr/sbin/dockerd >"$log" 2>&1 </dev/null &
dockerd=$!
deadline=$(($(date +%s) + engine_deadline_s))
until engine_answers; do
    reason=""
    kill -0 "$dockerd" 2>/dev/null || reason="dockerd ended"
    [ "$(date +%s)" -lt "$deadline" ] || reason="dockerd does not answer after $engine_deadline_s s"
    if [ -n "$reason" ]; then
        tail -n 40 "$log" >&2
        fail "$reason; the end of $log is above"
    fi
    sleep 0.2
done
say "container engine $("$docker" version --format '{{.Server.Version}}') answers"
