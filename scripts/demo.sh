#!/usr/bin/env bash
# Several processes with hundreds of coroutines each contend for one lock; one that holds it is killed, another one
# stopped for longer than its session. Installs what is missing, builds, starts a throw-away ZooKeeper, and leaves
# nothing behind.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    cat << END
usage: scripts/demo.sh [options]

  --connect HOSTS   use this ZooKeeper ("zk1:2181,zk2:2181") instead of a throw-away one
  --servers 1|3     how many throw-away servers (1)
  --processes N     how many processes contend (4)
  --coroutines N    how many coroutines in each of them (200)
  --duration S      seconds (20)
  --help            this text

Exits with 0 if every check has passed.
END
}

usage_error() {
    printf 'error: %s\n\n' "$1" >&2
    usage >&2
    exit 2
}

connect= count=1 options=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --connect | --servers | --processes | --coroutines | --duration)
            [ $# -ge 2 ] && [ -n "$2" ] || usage_error "$1 needs a value"
            case $1 in
                --connect) connect=$2 ;;
                --servers) count=$2 ;;
                *)
                    [[ $2 =~ ^[0-9]+$ ]] || usage_error "$1 needs a number, not $2"
                    options+=("$1" "$2")
                    ;;
            esac
            shift 2
            ;;
        *) usage_error "unknown option: $1" ;;
    esac
done
case $count in 1 | 3) ;; *) usage_error "--servers is 1 or 3, not $count" ;; esac

# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

# The demo tidies up before its ZooKeeper goes. In the background, because a shell does not look at signals while it
# waits for a program in the foreground.
demo=
end_demo() {
    [ -z "$demo" ] && return
    kill -TERM "$demo" 2> /dev/null || true
    wait "$demo" || true
}
trap 'end_demo; exit 130' INT
trap 'end_demo; exit 143' TERM HUP

install_packages
build dev zkasio_demo
if [ -n "$connect" ]; then
    servers=$connect
else
    start_servers "$count"
fi

say "zkasio_demo"
set +e  # from here on a failure is a result
"$root/build/dev/examples/zkasio_demo" run --connect "$servers" "${options[@]}" &
demo=$!
wait "$demo"
status=$?
demo=
exit "$status"
