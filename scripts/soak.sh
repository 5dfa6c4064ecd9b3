#!/usr/bin/env bash
# Most of the library for hours, in several processes, against three real servers that are killed, stopped, parted and
# deprived of their disks. All processes write down what they get; a checker judges it at the end. What is left out:
# tests/soak/README.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/soak.sh [options]

  --hours H        for about so long (2); 0.01 is possible
  --seed N         begin with this seed, instead of one at random; it is printed. A seed repeats the sequence of faults
  --rate R         of the operations: 1 are some 85 a second, of all processes together (1)
  --gap S          mean seconds between two faults (10)
  --only FAULT     only this kind of fault; more than once: these kinds. See tests/soak/faults.py
  --build DIR      use this build directory as it is, instead of building the preset test
  --keep DIR       leave the histories and the servers' logs there, a new directory
  --help           this text

As root, the servers have networks and disks of their own, which can be cut off and filled; otherwise these faults are
left out. Other libraries share some of the locks, if their peers are built (tests/interop/peers).

Exits with 0 if no promise was broken, with 1 if one was, and with 77 if there is no ZooKeeper. The summary names the
processes and operations of a violation; --keep leaves their histories.
USAGE
}

hours=2 seed='' rate=1 gap=10 build='' keep='' only=()
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --hours | --rate | --gap)
            [[ ${2:-} =~ ^[0-9]+([.][0-9]+)?$ && ${2:-} =~ [1-9] ]] || usage_error "$1 needs a number above 0"
            case $1 in
                --hours) hours=$2 ;;
                --rate) rate=$2 ;;
                --gap) gap=$2 ;;
            esac
            shift 2
            ;;
        --seed)
            [[ ${2:-} =~ ^[1-9][0-9]{0,9}$ ]] || usage_error "$1 needs a number"
            seed=$2
            shift 2
            ;;
        --only | --build | --keep)
            [ -n "${2:-}" ] || usage_error "$1 needs a value"
            case $1 in
                --only) only+=(--only "$2") ;;
                --build) build=$2 ;;
                --keep) keep=$2 ;;
            esac
            shift 2
            ;;
        *) usage_error "unknown option $1" ;;
    esac
done
[ -n "$seed" ] || seed=$(shuf -i 1-1000000000 -n 1)
[ -z "$keep" ] || [ ! -e "$keep" ] || die "$keep is there already"
[ -z "$build" ] || [ -d "$build" ] || die "there is no directory $build"

if [ -z "$build" ]; then
    install_packages python3
    build test zkasio_soak_worker
    build=$root/build/test
fi
build=$(cd "$build" && pwd)
if [ -z "${ZKASIO_ZOOKEEPER_CLASSPATH:-}" ] && [ ! -e /usr/share/java/zookeeper.jar ]; then
    echo "no ZooKeeper here: install the package zookeeper" >&2
    exit 77
fi
# Copies: what is built during the run does not disturb it.
directory=$work/run
mkdir -p "$work/programs" "$directory"
cp "$build/tests/soak/zkasio_soak_worker" "$root/scripts/zookeeper_server.sh" "$root"/tests/soak/*.py "$work/programs"
arguments=(--directory "$directory" --worker "$work/programs/zkasio_soak_worker"
    --server-script "$work/programs/zookeeper_server.sh" --hours "$hours" --seed "$seed" --rate "$rate" --gap "$gap"
    "${only[@]}")
# Other libraries' programs name their own directory, and that of the sources.
if [ -x "$build/tests/interop/peers/curator" ]; then
    cp -r "$build/tests/interop/peers" "$work/programs/peers"
    cp "$root/tests/interop/peers/kazoo_peer.py" "$work/programs/peers"
    sed -i "s|$build/tests/interop/peers|$work/programs/peers|; s|$root/tests/interop/peers|$work/programs/peers|" \
        "$work/programs/peers"/{curator,kazoo,gozk}
    arguments+=(--peers "$work/programs/peers")
fi
# Whether this machine allows networks and mounts of one's own, as servers.py makes them.
own_network() {
    [ "$(id -u)" -eq 0 ] || return
    # shellcheck disable=SC2016  # the inner shell's
    unshare --net --mount sh -ec '
        ip link set lo up
        ip link add name first type veth peer name second
        ip link add name third type bridge
        ip route add blackhole 10.213.9.1/32
        mount -t tmpfs -o size=1m probe "$1"' sh "$directory" 2> /dev/null
}
own=()
if own_network; then
    own=(unshare --net --mount)
    arguments+=(--own-network)
else
    arguments+=(--ports "$(free_ports 127.0.0.1 3) $(free_ports 127.0.0.2 3) $(free_ports 127.0.0.3 3)")
fi

say "soaking for $hours hours, seed $seed"
status=0
: > "$work/log"
setpriv --pdeathsig TERM "${own[@]}" python3 -B "$work/programs/conductor.py" "${arguments[@]}" >> "$work/log" 2>&1 &
conductor=$!
tail --pid="$conductor" -n +1 -f "$work/log" &
wait "$conductor" || status=$?
say "checking"
python3 -B "$work/programs/check.py" "$directory" | tee "$work/summary" || status=1
[ "$status" -eq 0 ] || echo "again: scripts/soak.sh --seed $seed"
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    cp -r "$directory/history" "$work/log" "$work/summary" "$keep"
    cp "$directory"/*.stderr "$keep"
    for i in 0 1 2; do cp "$directory/zk$i/log" "$keep/zk$i.log"; done
fi
exit "$status"
