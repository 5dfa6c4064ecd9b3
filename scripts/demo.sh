#!/usr/bin/env bash
# Several processes with hundreds of coroutines each contend for one lock; one that holds it is killed, another one
# stopped for longer than its session. Or, with --page, two order servers and their customers, to be looked at in a
# browser. Installs what is missing, builds, starts a throw-away ZooKeeper, and leaves nothing behind.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << END
usage: scripts/demo.sh [options]

  --connect HOSTS   use this ZooKeeper ("zk1:2181,zk2:2181") instead of a throw-away one
  --servers 1|3     how many throw-away servers (1)
  --processes N     how many processes contend (4)
  --coroutines N    how many coroutines in each of them (200)
  --duration S      seconds (20)
  --page            instead of that, examples/order_server: two instances, customers, and a live page of their locks,
                    until Ctrl-C
  --port N          where that page is (8080); the second instance has the next port
  --help            this text

Exits with 0 if every check has passed.
END
}

connect= count=1 options=() page= port=8080
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --page) page=1; shift ;;
        --connect | --port | --servers | --processes | --coroutines | --duration)
            [ $# -ge 2 ] && [ -n "$2" ] || usage_error "$1 needs a value"
            case $1 in
                --connect) connect=$2 ;;
                --servers) count=$2 ;;
                *)
                    [[ $2 =~ ^[0-9]+$ ]] || usage_error "$1 needs a number, not $2"
                    if [ "$1" = --port ]; then port=$2; else options+=("$1" "$2"); fi
                    ;;
            esac
            shift 2
            ;;
        *) usage_error "unknown option $1" ;;
    esac
done
case $count in 1 | 3) ;; *) usage_error "--servers is 1 or 3, not $count" ;; esac

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

packages=("${demo_packages[@]}")
install_packages
target=zkasio_demo
[ -z "$page" ] || target=zkasio_order_server
build demo "$target"
if [ -n "$connect" ]; then
    servers=$connect
else
    start_servers "$count"
fi

say "$target"
set +e  # from here on a failure is a result
if [ -n "$page" ]; then
    python3 "$root/examples/order_server/demo.py" --server "$root/build/demo/examples/order_server/order_server" \
        --connect "$servers" --port "$port" &
else
    "$root/build/demo/examples/zkasio_demo" run --connect "$servers" "${options[@]}" &
fi
demo=$!
wait "$demo"
status=$?
demo=
exit "$status"
