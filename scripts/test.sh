#!/usr/bin/env bash
# Builds zkasio and runs its tests against a real ZooKeeper: one that it starts for the purpose, unless told otherwise.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/test.sh [--asan | --tsan | --clang | --libcxx | --boost | --all | --bare | --dev | --debian RELEASE]
                       [--connect HOSTS | --servers 1|3] [--label LABEL,...] [--repeat N] [--only REGEX] [--skip REGEX]

  --asan           unit, simulation (5 seeds each), testing (but laws of cost), memory, integration (real servers) and
                   tls tests with clang under AddressSanitizer and UBSan
  --tsan           tls tests under ThreadSanitizer, and those unit, testing and integration tests that have threads
  --clang          consumer tests and the examples with clang and a shared library
  --libcxx         unit, testing, memory and integration tests with clang and LLVM's C++ library
  --boost          unit, simulation, testing, memory, integration and tls tests of the library for Boost.Asio, and its
                   example
  --all            all but the last two, and before them the plain tests
  --bare           as --all without --clang, with the plain tests in a new Debian 12 that has nothing but apt:
                   scripts/debian.sh. Where that is not possible, they run here.
  --dev            builds build/dev, where you edit: each file for itself
  --debian 13      builds in a Debian of its own, and runs the unit, consumer and integration tests there: see
                   scripts/debian.sh, which needs root
  --connect HOSTS  use this ZooKeeper ("host:port,host:port") instead of a throw-away one. The tests create and remove
                   nodes /test-*; the server needs 4lw.commands.whitelist=* and zookeeper.extendedTypesEnabled=true.
  --servers 3      start a throw-away ensemble instead of a single server
  --label LABELS   only some of unit, simulation, testing, integration, memory, faults, tls; without sanitizers also
                   interop, examples, page, cli, docs, consumer: "faults,tls"
  --repeat N       run each test N times, until one fails
  --only REGEX     run the tests with such a name
  --skip REGEX     leave them out
USAGE
}

modes=(plain) plain=test bare= connect= count=1 label= repeat=1 only_named= skip= debian=
while [ $# -gt 0 ]; do
    case $1 in
        --asan) modes=(asan) ;;
        --tsan) modes=(tsan) ;;
        --clang) modes=(clang) ;;
        --libcxx) modes=(libcxx) ;;
        --boost) modes=(boost) ;;
        --all) modes=(plain asan tsan clang) ;;
        --bare) modes=(asan tsan) bare=1 ;;
        --dev) plain=dev ;;
        --debian) debian=${2:?--debian needs RELEASE}; shift ;;
        --connect) connect=${2:?--connect needs HOSTS}; shift ;;
        --servers) count=${2:?--servers needs a number}; shift ;;
        --label) label=${2:?--label needs LABELS}; shift ;;
        --repeat) repeat=${2:?--repeat needs a number}; shift ;;
        --only) only_named=${2:?--only needs a regular expression}; shift ;;
        --skip) skip=${2:?--skip needs a regular expression}; shift ;;
        -h | --help) usage; exit ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done
[ -z "$only_named" ] || [ -z "$bare$debian" ] || usage_error "--only is for tests that run here"
case $count in 1 | 3) ;; *) usage_error "--servers is 1 or 3, not $count" ;; esac
has_mode() { [[ " ${modes[*]} " == *" $1 "* ]]; }
if has_mode asan || has_mode tsan; then
    for l in ${label//,/ }; do
        case $l in
            unit | simulation | testing | integration | memory | faults | tls) ;;
            *) usage_error "there are no $l tests under sanitizers" ;;
        esac
    done
fi

if [ -n "$debian" ]; then
    packages=("${server_packages[@]}")
    [ -n "$connect" ] || { install_packages; start_servers "$count"; connect=$servers; }
    "$root/scripts/debian.sh" "$debian" --connect "$connect"
    exit
fi
in_plain() { has_mode plain && [[ -z $label || ,$label, == *",$1,"* ]]; }  # LABEL
more=()
if in_plain interop; then more+=("${interop_packages[@]}"); fi
if in_plain docs; then more+=("${docs_packages[@]}"); fi
if has_mode clang || has_mode asan || has_mode tsan || has_mode libcxx; then more+=(clang-19 libclang-rt-19-dev); fi
# For the names in reports, and in suppressions.
if has_mode asan || has_mode tsan; then more+=(llvm-19); fi
if has_mode libcxx; then more+=(libc++-19-dev libc++abi-19-dev); fi
if has_mode boost; then more+=("$(boost_of "$this_suite")"); fi
install_packages "${more[@]}"
if in_plain page; then
    # Not everywhere is there a Chromium to be had. In a shell of its own, which ends when it fails.
    (install_packages "${page_packages[@]}") || say "without Chromium: the tests of the live page are skipped"
fi
# What is tested when nothing else is said.
declare -A levels=(
    [plain]= [asan]='unit|simulation|testing|memory|integration|tls' [tsan]='unit|testing|integration|tls'
    [clang]='examples|consumer'
    [libcxx]='unit|testing|memory|integration'
    [boost]='unit|simulation|testing|memory|integration|tls|examples')
level_targets() { # LABEL
    targets+=("zkasio_$1_tests")
    [ "$1" != faults ] || targets+=(zkasio_faults_through_tls_tests)
}
# Sets `targets` to what is built for that; nothing means all.
targets_of() { # MODE
    local l
    targets=()
    case $1 in
        plain)
            # Programs of tests alone are built alone.
            for l in ${label//,/ }; do
                case $l in
                    unit | simulation | testing | integration | memory | faults | tls | interop) level_targets "$l" ;;
                    *) targets=(); return ;;
                esac
            done
            ;;
        clang) targets=(zkasio_examples zkasio_consumer_tests) ;;
        boost) targets=(boost_zkasio_{unit,simulation,testing,memory,integration,tls}_tests zkasio_lock_per_request) ;;
        *)
            local chosen=${label:-${levels[$1]}}
            for l in ${chosen//[,|]/ }; do level_targets "$l"; done
            ;;
    esac
}
preset_of() { if [ "$1" = plain ]; then echo "$plain"; else echo "$1"; fi; }

# The first as fast as can be, the others while tests run, which wait for most of their time.
ahead=("${modes[@]}")
if [ -z "$bare" ]; then
    targets_of "${modes[0]}"
    build "$(preset_of "${modes[0]}")" "${targets[@]}"
    ahead=("${modes[@]:1}")
fi
# What is built beside the tests gives way to them, which is not what /proc/loadavg says.
[ ${#ahead[@]} -eq 0 ] || export ZKASIO_TEST_PACE=${ZKASIO_TEST_PACE:-1.5}
for mode in "${ahead[@]}"; do
    targets_of "$mode"
    build_ahead "$mode" "${targets[@]}"
done
# It takes minutes to compile each header by itself, which clang does.
each_header='^consumer: headers stand alone$'
if [ -n "$bare" ]; then "$root/scripts/debian.sh" 12 --bare --or-here -- --skip "$each_header"; fi

if [ -n "$connect" ]; then servers=$connect; else start_servers "$count"; fi
export ZKASIO_TEST_SERVERS=$servers
symbolizer=/usr/bin/llvm-symbolizer-19
if [ -x $symbolizer ]; then symbolizer=:external_symbolizer_path=$symbolizer; else symbolizer=; fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0:strict_string_checks=1$symbolizer}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1$symbolizer}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1$symbolizer}

for mode in "${modes[@]}"; do
    [ -z "${built_ahead[$mode]:-}" ] || until_built "$mode"
    say "testing ($mode)"
    # One more than there are cores: many tests wait. Those that share a server, and those that break one, are chains of
    # one at a time: see tests/CMakeLists.txt.
    at_once=$(($(nproc) + 1))
    how=(--parallel "$at_once" --output-on-failure --no-tests=error)
    only=${label:-${levels[$mode]}} only=${only//,/|}
    [ -z "$only" ] || how+=(-L "^($only)\$")
    [ "$repeat" = 1 ] || how+=(--repeat "until-fail:$repeat")
    [ -z "$only_named" ] || how+=(-R "$only_named")
    without=$skip
    if [[ $mode == plain && -z $label ]] && has_mode clang; then without+=${without:+|}$each_header; fi
    [ -z "$without" ] || how+=(-E "$without")
    # Under sanitizers a program begins slowly, so several cases share one, unless cases are named.
    together=
    if [[ $mode == [at]san && -z $only_named$skip && $repeat == 1 ]]; then together=20; fi
    # A seed of the simulation takes several times as long there, and what it is to find it finds in the first ones.
    seeds=${ZKASIO_SIM_SEEDS:-}
    [ "$mode" != asan ] || seeds=${seeds:-5}
    env ${together:+ZKASIO_TESTS_TOGETHER=$together} ${seeds:+ZKASIO_SIM_SEEDS="$seeds"} \
        ctest --test-dir "$root/build/$(preset_of "$mode")" "${how[@]}"
done
