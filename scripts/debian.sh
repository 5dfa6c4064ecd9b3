#!/usr/bin/env bash
# Builds zkasio and runs its tests in a Debian of its own: another release than this one, or one with nothing installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"
# shellcheck source=scripts/roots.sh
. "$root/scripts/roots.sh"

usage() {
    cat << USAGE
usage: scripts/debian.sh RELEASE [--keep DIR] [--connect HOSTS] [--packages] [--if-possible]
       scripts/debian.sh RELEASE --bare [--or-here] [-- ARGUMENT...]
       scripts/debian.sh RELEASE --servers [--if-possible]

  RELEASE          12, 13, or a name: trixie
  --keep DIR       install that Debian into DIR and leave it there; when it is there already, use it
  --connect HOSTS  run the integration tests as well, on this ZooKeeper ("host:port,host:port")
  --packages       make Debian packages there, too, and check them: scripts/package.sh
  --if-possible    where there is no root, or no mirror that has that release: say so, and succeed
  --bare           run scripts/test.sh, with ARGUMENTs, in a new Debian that has nothing but apt, from an archive
                   without .git: what a new user does
  --servers        --bare, with the tests that need servers: that Debian's ZooKeeper, and its C client
  --or-here        where that is not possible: say so, and run it here

Needs root, for chroot, and a Debian mirror.
USAGE
}

release= keep= connect= with_packages= optional= bare= or_here= arguments=()
while [ $# -gt 0 ]; do
    case $1 in
        --keep) keep=${2:?--keep needs DIR}; shift ;;
        --connect) connect=${2:?--connect needs HOSTS}; shift ;;
        --packages) with_packages=1 ;;
        --if-possible) optional=1 ;;
        --bare) bare=1 ;;
        --servers) bare=1 arguments=(--label "integration,tls,faults,interop") ;;
        --or-here) or_here=1 ;;
        --) shift; arguments=("$@"); break ;;
        -h | --help) usage; exit ;;
        1[0-9] | [a-z]*) release=$1 ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done
[ -n "$release" ] || usage_error "which RELEASE?"

suite=$(suite_of "$release")
if [ -n "$or_here" ]; then
    impossible() {
        say "testing here, NOT in a bare Debian $suite: $1"
        "$root/scripts/test.sh" "${arguments[@]}"
        exit
    }
fi
need_roots
if [ -n "$bare" ]; then
    make_root "$work/$suite"
    copy_project "$work/$suite"
    say "scripts/test.sh ${arguments[*]} in a bare Debian $suite"
    in_system "$work/$suite" /zkasio scripts/test.sh "${arguments[@]}"
    exit
fi
inside=${keep:-$work/$suite}
needed=("${build_packages[@]}")
[ -z "$with_packages" ] || needed+=("${package_packages[@]}" "$(boost_of "$suite")")

[ -e "$inside/usr/bin/cmake" ] || make_root "$inside" "${needed[@]}"
[ -z "$with_packages" ] || [ -e "$inside/usr/include/boost/asio.hpp" ] || die "$inside was made without --packages"

say "building in Debian $suite"
copy_project "$inside"
tests=(unit)
[ -z "$connect" ] || tests+=(integration)
targets=(zkasio_examples zkasio_consumer_tests)
for t in "${tests[@]}"; do targets+=("zkasio_${t}_tests"); done
in_there() { in_root "$inside" /zkasio env ZKASIO_TEST_SERVERS="$connect" "$@"; }
quietly "cmake could not configure" in_there cmake --preset dev -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=48
in_there cmake --build build/dev --target "${targets[@]}"

say "testing in Debian $suite"
in_there ctest --parallel "$(nproc)" --test-dir build/dev --output-on-failure --no-tests=error \
    -L "^($(IFS='|'; echo "${tests[*]}"))\$"
in_there ctest --test-dir build/dev --output-on-failure --no-tests=error \
    -R "^consumer: (exports|shared library|embedded|wrong-asio)"

[ -z "$with_packages" ] || "$root/scripts/package.sh" --check "$suite" --build-in "$inside"
