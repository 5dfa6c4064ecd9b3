#!/usr/bin/env bash
# Measures zkasio beside C code written by hand and other libraries, and prints for each target what was measured.
# Installs what is missing, builds, starts a throw-away ZooKeeper, and leaves nothing behind.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

plots=$root/scripts/docs/plots.py
parts=$(python3 -B "$plots" parts)
usage() {
    cat << END
usage: scripts/bench.sh [PART...] [options]

  PART             all, or some of: $parts
  --quick          fewer rounds and smaller trees: all parts within 10 minutes on two cores
  --connect HOSTS  use this ZooKeeper ("127.0.0.1:2181") instead of a throw-away one; it needs the commands "cons",
                   "srvr" and "mntr", and for the parts cache and caches it has to run here. fail-over and, for a killed
                   server, caches always have servers of their own
  --data FILE      where the figures go, as JSON (build/release/bench.json). Parts that are not measured keep theirs
  --draw           draws the pictures of docs/performance.md, too, from docs/pictures/bench.json, where the figures
                   then go
  --no-install     installs nothing: parts go without libraries that are missing
  --help           this text

Exits with 0 also if a target is missed, and with 1 if a benchmark has failed.
END
}

chosen=() quick=() connect="" data=$root/build/release/bench.json draw="" install=1
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --quick) quick=(--quick) ;;
        --draw) draw=1 data=$root/docs/pictures/bench.json ;;
        --no-install) install= ;;
        --connect | --data)
            [ -n "${2:-}" ] || usage_error "$1 needs a value"
            case $1 in
                --connect) connect=$2 ;;
                --data) data=$(realpath -m "$2") ;;
            esac
            shift
            ;;
        -*) usage_error "unknown option $1" ;;
        *)
            [[ " $parts " == *" $1 "* ]] || usage_error "unknown part $1"
            chosen+=("$1")
            ;;
    esac
    shift
done

more=()
[ -z "$draw" ] || more=(python3-matplotlib)
if [ -n "$install" ]; then
    packages=("${build_packages[@]}" "${server_packages[@]}")
    install_packages "${interop_packages[@]}" "${more[@]}"
fi
say "building (release)"
quietly "cmake could not configure" cmake --preset release -S "$root" -DCMAKE_UNITY_BUILD=ON \
    -DZKASIO_TESTS=OFF -DZKASIO_EXAMPLES=OFF
cmake --build "$root/build/release"
servers=$connect
[ -n "$connect" ] || start_servers 1

say "measuring"
# In the background, because a shell does not look at signals while it waits for a program in the foreground.
python3 -B "$plots" measure "${quick[@]}" "$root/build/release/tests/bench" "$servers" "$data" "${chosen[@]}" &
status=0
wait $! || status=$?
[ -z "$draw" ] || /usr/bin/python3 -B "$plots" draw "$data" "$root/docs/pictures"
say "figures: $data"
exit "$status"
