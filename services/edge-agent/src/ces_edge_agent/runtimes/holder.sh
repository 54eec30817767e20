# The first process of a holder: keeps the namespaces of one allocation, and ends whatever runs in them once the
# node's lease has run out, whether or not an agent is there to do so. When it ends, the kernel kills every process of
# its process id namespace, its workers; so they live no longer than it, whatever ends it.
#   sh -c "$(cat holder.sh)" holder FOLDER ALLOCATION UPTIME
# FOLDER holds the file "deadline" (see deadline.py) and two folders with files named after allocations: "keep" for
# those that go on without a lease, "lapsed" for notes of what was ended here. UPTIME: /proc/uptime, which counts as
# CLOCK_BOOTTIME does. Plain sh and sleep: the holder's image has nothing else.

known=0

lapsed() {
    [ -e "$1/keep/$2" ] && return 1
    { read -r boot end again <"$1/deadline"; } 2>/dev/null
    [ -n "$end" ] && [ "$end" = "$again" ] && known=${end%.*}${end#*.}
    read -r up idle <"$3"
    ! [ "${up%.*}${up#*.}" -lt "$known" ]
}

# The living first processes of the other containers in here: those whose parent is outside of this namespace. The
# name in their status may hold anything, but ends at the last parenthesis.
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
    # Who ends politely must not be taken for one that has done its work: without a note not a word, but the end.
    echo 1 >"$1/lapsed/$2" || exit
    kill -s TERM $told
    sleep 1
    for pid in $told; do
        [ -e "/proc/$pid" ] && exit
    done
done
