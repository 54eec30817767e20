#!/usr/bin/env bash
# Whether images that were carried here are those that were built there.
#
#   deploy/airgap/contents.sh IMAGE... >images.txt     there: the content of each
#   deploy/airgap/contents.sh --check images.txt       here: fails and names each image that is another, or is missing
#
# The id of an image is the SHA-256 of its configuration, which holds that of each layer; the engine computes both as it loads them.
# Keep the record apart from the images: whoever can change both changes both.
set -euo pipefail

id_of() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null; }
usage() { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

case ${1:-} in
    "" | -h | --help) usage; [ $# -gt 0 ] || exit 2 ;;
    --check)
        [ $# = 2 ] || { usage >&2; exit 2; }
        status=0 checked=0
        while read -r id image; do
            case $(id_of "$image" || true) in
                "$id") checked=$((checked + 1)) ;;
                "") echo "$image: missing" >&2; status=1 ;;
                *) echo "$image: another than recorded" >&2; status=1 ;;
            esac
        done <"$2"
        [ $((checked + status)) -gt 0 ] || { echo "$2 records no image" >&2; exit 1; }
        echo "$checked images as recorded"
        exit $status
        ;;
    *)
        for image; do
            id=$(id_of "$image") || { echo "error: no image $image here" >&2; exit 1; }
            echo "$id $image"
        done
        ;;
esac
