#!/usr/bin/env bash
# Builds zkasio and runs its tests inside of another release of Debian than this one.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    cat << USAGE
usage: scripts/debian.sh RELEASE [--keep DIR] [--connect HOSTS] [--if-possible]

  RELEASE          13, or a name: trixie
  --keep DIR       install that Debian into DIR and leave it there; when it is there already, use it
  --connect HOSTS  run the integration tests as well, on this ZooKeeper ("host:port,host:port")
  --if-possible    where there is no root, or no mirror that has that release: say so, and succeed

Needs root, for chroot, and a Debian mirror.
USAGE
}

release= keep= connect= optional=
while [ $# -gt 0 ]; do
    case $1 in
        --keep) keep=${2:?--keep needs DIR}; shift ;;
        --connect) connect=${2:?--connect needs HOSTS}; shift ;;
        --if-possible) optional=1 ;;
        -h | --help) usage; exit ;;
        13) release=trixie ;;
        [a-z]*) release=$1 ;;
        *) usage >&2; echo "error: unknown option $1" >&2; exit 2 ;;
    esac
    shift
done
[ -n "$release" ] || { usage >&2; exit 2; }

# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"
impossible() {
    [ -n "$optional" ] || die "$1"
    say "NOT tested in Debian $release: $1"
    exit 0
}
[ "$(id -u)" -eq 0 ] || impossible "chroot needs root"
packages=(mmdebstrap)
install_packages
inside=${keep:-$work/$release}

if [ ! -e "$inside/usr/bin/cmake" ]; then
    say "installing Debian $release into $inside"
    timeout 900 mmdebstrap --quiet --mode=root --variant=apt \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
        --include="$(IFS=,; echo "${build_packages[*]}")" "$release" "$inside" ||
        impossible "mmdebstrap could not install Debian $release"
fi

echo '127.0.0.1 localhost' > "$inside/etc/hosts"  # what an installed system has

say "building in Debian $release"
mkdir -p "$inside/zkasio"
tar -C "$root" --exclude=./build --exclude=./.git -c . | tar -C "$inside/zkasio" -x
tests=(unit)
[ -z "$connect" ] || tests+=(integration)
targets=(zkasio_examples zkasio_consumer_tests)
for t in "${tests[@]}"; do targets+=("zkasio_${t}_tests"); done
in_there() { chroot "$inside" env -C /zkasio ZKASIO_TEST_SERVERS="$connect" "$@"; }
in_there cmake --preset dev -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 > "$work/configure.log" ||
    { cat "$work/configure.log" >&2; die "cmake could not configure"; }
in_there cmake --build build/dev --target "${targets[@]}"

say "testing in Debian $release"
in_there ctest --parallel "$(nproc)" --test-dir build/dev --output-on-failure --no-tests=error \
    -L "^($(IFS='|'; echo "${tests[*]}"))\$"
in_there ctest --test-dir build/dev --output-on-failure --no-tests=error \
    -R "^consumer: (exports|shared library|embedded|wrong-asio)"
