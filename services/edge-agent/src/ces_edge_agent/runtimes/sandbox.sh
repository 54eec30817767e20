# The first process of a pod sandbox: keeps the namespaces of one allocation, and ends the workers in them once the
# node's lease has run out, whether or not an agent runs. When it ends, for whatever reason, the kernel kills every
# process in its process id namespace, so no worker outlives it.
#   sh -c "$(cat sandbox.sh)" sandbox FOLDER ALLOCATION UPTIME
# FOLDER holds the file "deadline" (see deadline.py) and two folders with files named after allocations: "keep" for
# workers that go on without a lease, or for as many hundredths of a second beyond it as the file says; "lapsed" for a
# record of those ended here. UPTIME: /proc/uptime, which counts as CLOCK_BOOTTIME does. Plain sh and sleep: the
# sandbox's image has nothing else.

known=0

# Hundredths of a second, without zeros before them: arithmetic would take those for an octal number.
hundredths() {
    digits=${1%.*}${1#*.}
    digits=${digits#0}
    echo "${digits#0}"
}

lapsed() {
    more=0
    if [ -e "$1/keep/$2" ]; then
        read -r more <"$1/keep/$2"
        [ -n "$more" ] || return 1
    fi
    { read -r boot end again <"$1/deadline"; } 2>/dev/null
    case $end in
    "" | *[!0-9.]*) ;;
    "$again") known=$(hundredths "$end") ;;
    esac
    read -r up idle <"$3"
    [ "$known" = 0 ] || ! [ "$(hundredths "$up")" -lt $((known + more)) ]
}

# The living first processes of the workers' containers: those whose parent is outside this namespace. The name in
# /proc/PID/stat may hold any characters, but ends at the last parenthesis.
workers() {
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        pid=${line%% *}
        set -- ${line##*) }
        [ "$2" = 0 ] && [ "$1" != Z ] && [ "$pid" != 1 ] && echo "$pid"
    done
}

while sleep 1; do
    lapsed "$@" || continue
    told=$(workers)
    [ -n "$told" ] || continue
    # A worker that exits with 0 on SIGTERM must not count as successful. So if no record can be written, no SIGTERM is
    # sent: this process exits, and the kernel kills the workers.
    echo 1 >"$1/lapsed/$2" || exit
    kill -s TERM $told
    sleep 1
    for pid in $told; do
        [ -e "/proc/$pid" ] && exit
    done
done
