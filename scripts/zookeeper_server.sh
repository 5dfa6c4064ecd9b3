#!/usr/bin/env bash
# Becomes a throw-away ZooKeeper server: DIR gets its configuration, data and log, and the process is the server.
#
#   zookeeper_server.sh DIR ADDRESS PORT [MYID SERVER...]
#
# ADDRESS and PORT are the client's. For an ensemble, MYID is this server's number and each SERVER is one line of the
# configuration, "server.1=127.0.0.1:2888:3888". Environment: TICK (milliseconds, 500).
set -euo pipefail
dir=$1 address=$2 port=$3
shift 3
mkdir -p "$dir/data"
{
    echo "tickTime=${TICK:-500}"
    echo "initLimit=20"
    echo "syncLimit=10"
    echo "dataDir=$dir/data"
    echo "clientPortAddress=$address"
    echo "clientPort=$port"
    echo "maxClientCnxns=0"
    echo "admin.enableServer=false"
    echo "4lw.commands.whitelist=*"
    echo "reconfigEnabled=true"
    if [ $# -gt 0 ]; then
        echo "$1" > "$dir/data/myid"
        shift
        printf '%s\n' "$@"
    fi
} > "$dir/zoo.cfg"

jar=/usr/share/java/zookeeper.jar
[ -e "$jar" ] || { echo "no $jar: install the package zookeeper" >&2; exit 3; }
# Its disk is not what is tested: no waiting for it. A container's node is looked after every second.
exec java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    -Dzookeeper.extendedTypesEnabled=true -Dzookeeper.forceSync=no -Dznode.container.checkIntervalMs=1000 \
    -cp "$jar" org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" > "$dir/log" 2>&1
