#!/bin/sh
# Options alone are meant for the server: `docker run nats:2-alpine -js`.
set -eu
case ${1:-} in
    -*) set -- nats-server "$@" ;;
esac
exec "$@"
