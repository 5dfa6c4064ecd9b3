# shellcheck shell=bash
# What the scripts share: packages, builds, throw-away servers that end with the script. Sourced, not run.

build_packages=(g++ cmake ninja-build pkgconf libasio-dev libzookeeper-st-dev catch2 libtrompeloeil-cpp-dev
    libcli11-dev libfmt-dev nlohmann-json3-dev prometheus-cpp-dev librestinio-dev libsqlite3-dev libssl-dev
    libkrb5-dev python3)
server_packages=(zookeeper default-jre-headless)
# A KDC of the tests' own: tests/tls/kerberos_realm.cpp.
kerberos_packages=(krb5-kdc krb5-admin-server krb5-user)
# The shells that zklock completes for, and what checks its JSON: tests/cli.
cli_packages=(zsh fish python3-jsonschema)
packages=("${build_packages[@]}" "${server_packages[@]}" "${kerberos_packages[@]}" "${cli_packages[@]}" iproute2
    groff-base python3-yaml valgrind openssl mold)
# scripts/demo.sh needs no more than these.
demo_packages=(g++ cmake ninja-build libasio-dev libzookeeper-st-dev libcli11-dev libfmt-dev nlohmann-json3-dev
    prometheus-cpp-dev librestinio-dev libsqlite3-dev python3 "${server_packages[@]}")
# The library for Boost.Asio is made with this one, too.
boost_of() { # SUITE
    if [ "$1" = bookworm ]; then echo libboost1.81-dev; else echo libboost-dev; fi  # bookworm's libboost-dev is 1.74
}
this_suite=$( (. /etc/os-release && echo "${VERSION_CODENAME:-}") 2> /dev/null || true)
# Other libraries that share locks with ours: tests/interop.
interop_packages=(default-jdk-headless libcurator-recipes-java libcurator-discovery-java golang-go
    golang-github-samuel-go-zookeeper-dev python3-kazoo)
# What looks at the page of examples/order_server: tests/order_server.
page_packages=(chromium chromium-driver)
# What makes the site of docs/: scripts/docs.sh. Debian 12's; nothing is loaded from the network, neither then nor
# later.
docs_packages=(mkdocs mkdocs-material doxygen python3 python3-pygments)

say() { printf '\n== %s  [%d:%02d]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }  # since the script began
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
usage_error() { # WHAT; each script has its own usage
    printf 'error: %s\n\n' "$1" >&2
    usage >&2
    exit 2
}

# Installs what is missing, with apt.
install_packages() {
    local missing=() p
    if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
        command -v cmake > /dev/null && command -v java > /dev/null && [ -e /usr/share/java/zookeeper.jar ] && return
        die "no apt-get here. Install what Debian calls: ${packages[*]} $*"
    fi
    for p in "${packages[@]}" "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2> /dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "installing ${missing[*]}"
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null || die "not root and no sudo: have an administrator install ${missing[*]}"
        sudo=(sudo)
    fi
    # One script at a time: apt does not wait for another one's update.
    # shellcheck disable=SC2016  # the inner shell's
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive flock "${TMPDIR:-/tmp}/zkasio-apt.lock" sh -c \
        'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" > /dev/null' sh "${missing[@]}" ||
        die "apt-get could not install ${missing[*]}"
}

# What a command prints is shown only when it fails.
quietly() { # WHAT_HAS_FAILED COMMAND...
    local failed=$1
    shift
    "$@" > "$work/quietly.log" 2>&1 || { cat "$work/quietly.log" >&2; die "$failed"; }
}

configure() { # PRESET
    local preset=$1 strict=OFF unity=ON linker=
    # Not under ThreadSanitizer: there g++ 12 warns of its own standard library.
    if [ -n "${CI:-}" ]; then case $preset in test | boost | asan | clang) strict=ON ;; esac; fi
    # Most of a file's time goes into what it includes. In `dev` somebody edits.
    [ "$preset" != dev ] || unity=OFF
    # A third of the time for each of many programs.
    ! command -v mold > /dev/null || linker=-fuse-ld=mold
    quietly "cmake could not configure" cmake --preset "$preset" -S "$root" -DZKASIO_WERROR=$strict \
        -DCMAKE_UNITY_BUILD=$unity -DCMAKE_UNITY_BUILD_BATCH_SIZE=48 \
        -DCMAKE_EXE_LINKER_FLAGS=$linker -DCMAKE_SHARED_LINKER_FLAGS=$linker
}

build() { # PRESET [TARGET...]
    local preset=$1
    shift
    say "building ($preset)"
    configure "$preset"
    cmake --build "$root/build/$preset" ${1:+--target "$@"}
}

# Builds in the background, in what time the tests of others leave, and keeps quiet. That it has failed is said by
# until_built.
declare -A built_ahead=()
build_ahead() { # PRESET [TARGET...]
    local preset=$1 before=${last_ahead:-}
    shift
    configure "$preset"
    # One after another, since the first is needed first. Not by cmake, which does not end ninja when it is ended.
    {
        [ -z "$before" ] || tail --pid="$before" -f /dev/null
        exec nice -n 13 ninja -C "$root/build/$preset" -j "$(nproc)" "$@"
    } > "$work/build-$preset.log" 2>&1 &
    built_ahead[$preset]=$! last_ahead=$!
}
until_built() { # PRESET
    say "building ($1)"
    wait "${built_ahead[$1]}" || { cat "$work/build-$1.log" >&2; die "$1 does not build"; }
    tail -n 1 "$work/build-$1.log"
}

# Everything that was started in the background and still runs ends with the script, by its id, also on failure and
# Ctrl-C. What has ended is no longer a job: its id may be somebody else's by now.
work=$(mktemp -d "${TMPDIR:-/tmp}/zkasio.XXXXXX")
work=$(realpath "$work")  # also for those that go elsewhere
clean_up() {
    local status=$? pid running
    set +e  # what ends in this moment is no reason to leave the rest
    trap - EXIT
    trap '' INT TERM  # nor is another Ctrl-C
    running=$(jobs -pr)
    for pid in $running; do kill -CONT "$pid" 2> /dev/null; kill "$pid" 2> /dev/null; done
    for pid in $running; do wait "$pid" 2> /dev/null; done
    rm -rf --one-file-system "$work"  # never into what may still be mounted in a root there
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Different ones, below those that the kernel gives to clients.
free_ports() { # ADDRESS COUNT
    local port free=()
    for port in $(shuf -i 20000-30000 -n 50); do
        (exec 3<> "/dev/tcp/$1/$port") 2> /dev/null || free+=("$port")
        [ ${#free[@]} -lt "$2" ] || { echo "${free[@]}"; return; }
    done
    die "no $2 free ports on $1"
}

# With a limit: a server that is asked in the very moment in which it starts sometimes never answers.
ask_server() { # ADDRESS PORT
    timeout 2 bash -c 'exec 3<> "/dev/tcp/$0/$1" && echo srvr >&3 && cat <&3' "$1" "$2" 2> /dev/null || true
}

wait_for_server() { # ADDRESS PORT DIR PID
    local i
    for i in $(seq 300); do
        if [[ $(ask_server "$1" "$2") == *Mode:* ]]; then return; fi
        kill -0 "$4" 2> /dev/null || { cat "$3/log" >&2; die "the ZooKeeper server ended"; }
        sleep 0.1
    done
    cat "$3/log" >&2
    die "the ZooKeeper server on $1:$2 does not answer"
}

# Sets `servers` to their connect string.
start_servers() { # 1|3
    local count=$1 i address free port followers elections ports=() lines=() member pids=()
    say "starting $count throw-away ZooKeeper server$([ "$count" = 1 ] || echo s)"
    servers=
    for i in $(seq "$count"); do
        address=127.0.0.$i
        free=$(free_ports "$address" 3)
        read -r port followers elections <<< "$free"
        ports+=("$port")
        lines+=("server.$i=$address:$followers:$elections")
    done
    for i in $(seq "$count"); do
        address=127.0.0.$i port=${ports[i - 1]} member=()
        [ "$count" = 1 ] || member=("$i" "${lines[@]}")
        # For tests' sessions on a slow machine, see tests/support/pace.hpp.
        MAX_SESSION_TIMEOUT=60000 "$root/scripts/zookeeper_server.sh" "$work/zk$i" "$address" "$port" "${member[@]}" &
        pids+=($!)
        servers+=${servers:+,}$address:$port
    done
    for i in $(seq "$count"); do
        wait_for_server "127.0.0.$i" "${ports[i - 1]}" "$work/zk$i" "${pids[i - 1]}"
    done
    echo "   $servers"
}
