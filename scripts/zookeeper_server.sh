#!/usr/bin/env bash
# Becomes a throw-away ZooKeeper server: DIR gets its configuration, data and log, and the process is the server.
#
#   zookeeper_server.sh DIR ADDRESS PORT [MYID SERVER...]
#
# ADDRESS and PORT are the client's. For an ensemble, MYID is this server's number and each SERVER is one line of the
# configuration, "server.1=127.0.0.1:2888:3888". Environment: TICK (milliseconds, 500); MAX_SESSION_TIMEOUT
# (milliseconds, 20 ticks); TLS_PORT, TLS_KEY (a file with the key and the certificate), TLS_CA (with whom it trusts, for
# clients' certificates) and TLS_LINES (more lines of the configuration, for example "ssl.clientAuth=want"): it speaks
# TLS on that port as well. READ_WITHOUT_QUORUM (not empty): it goes on reading without a quorum, and its sessions begin
# as local ones. ZKASIO_ZOOKEEPER_CLASSPATH: another ZooKeeper than the one that is installed.
set -euo pipefail
dir=$1 address=$2 port=$3
shift 3
mkdir -p "$dir/data"
{
    echo "tickTime=${TICK:-500}"
    [ -z "${MAX_SESSION_TIMEOUT:-}" ] || echo "maxSessionTimeout=$MAX_SESSION_TIMEOUT"
    echo "initLimit=20"
    echo "syncLimit=10"
    echo "dataDir=$dir/data"
    echo "clientPortAddress=$address"
    echo "clientPort=$port"
    echo "maxClientCnxns=0"
    echo "admin.enableServer=false"
    echo "4lw.commands.whitelist=*"
    echo "reconfigEnabled=true"
    if [ -n "${READ_WITHOUT_QUORUM:-}" ]; then
        echo "localSessionsEnabled=true"
        echo "localSessionsUpgradingEnabled=true"
    fi
    if [ $# -gt 0 ]; then
        echo "$1" > "$dir/data/myid"
        shift
        printf '%s\n' "$@"
    fi
    if [ -n "${TLS_PORT:-}" ]; then
        echo "secureClientPortAddress=$address"
        echo "secureClientPort=$TLS_PORT"
        echo "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"
        echo "ssl.keyStore.location=$TLS_KEY"
        echo "ssl.keyStore.type=PEM"
        echo "ssl.trustStore.location=$TLS_CA"
        echo "ssl.trustStore.type=PEM"
        echo "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider"
        printf '%s\n' "${TLS_LINES:-}"
    fi
} > "$dir/zoo.cfg"

classes=${ZKASIO_ZOOKEEPER_CLASSPATH:-}
if [ -z "$classes" ]; then
    classes=/usr/share/java/zookeeper.jar
    [ -e "$classes" ] || { echo "no $classes: install the package zookeeper" >&2; exit 3; }
    # Debian 12's ZooKeeper speaks TLS, but does not find all of Netty that it needs for that.
    if [ -n "${TLS_PORT:-}" ]; then classes+=:/usr/share/java/netty-codec.jar; fi
fi
# Its disk is not what is tested: no waiting for it. A container's node is looked after every second.
exec java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    -Dzookeeper.extendedTypesEnabled=true -Dzookeeper.forceSync=no -Dznode.container.checkIntervalMs=1000 \
    ${READ_WITHOUT_QUORUM:+-Dreadonlymode.enabled=true} \
    -cp "$classes" org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" > "$dir/log" 2>&1
