#!/usr/bin/env bash
# Measures how much of the library the tests reach, by clang's source-based coverage.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/coverage.sh [--with LEVEL,...] [--no-build] [--missing ROOM] [--require PERCENT]

  --with LEVELS      also these levels of tests, besides unit and simulation: memory (the integration tests in memory),
                     testing, integration, tls, faults. Their figures, together with the former, are a second column
  --missing ROOM     prints each line of the room that has a branch which no test takes, both ways where both are missing
  --require PERCENT  exits with 1 if a smaller share of the library's branches is reached
  --no-build         takes the programs as they are
  --help             this text

A branch is one way out of a condition: of if, ?:, &&, ||, loops and cases. Ways that only an exception takes are none
for clang, so they are left out. Code of templates counts as reached when one of its instances is. Assertions are
compiled out. Counted are the sources and headers of lib/, without the room testing (a kit for tests); the room tls where
the level tls is run.
USAGE
}

levels=() build=1 look_at='' require=''
while [ $# -gt 0 ]; do
    case $1 in
        --with) IFS=, read -r -a levels <<< "${2:?--with needs levels}"; shift ;;
        --no-build) build= ;;
        --missing) look_at=${2:?--missing needs a room, such as locks}; shift ;;
        --require) require=${2:?--require needs a number}; shift ;;
        -h | --help) usage; exit ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done
for level in "${levels[@]}"; do
    case $level in memory | testing | integration | tls | faults) ;; *) usage_error "no level $level" ;; esac
done

install_packages clang-19 libclang-rt-19-dev llvm-19
program_of() { echo "zkasio_$1_tests"; }
all=(unit simulation "${levels[@]}")
targets=()
for level in "${all[@]}"; do targets+=("$(program_of "$level")"); done
[ -z "$build" ] || build coverage "${targets[@]}"
if [[ " ${levels[*]} " =~ " "(integration|tls)" " ]]; then
    start_servers 1
    export ZKASIO_TEST_SERVERS=$servers
fi

# What memory tests leave out: tests/CMakeLists.txt.
memory_only='~[real-threads]~[real-process]~[real-loop]~[real-names]~[real-bytes]~[real-server]~[real-time]'
directory=$root/build/coverage/profiles
mkdir -p "$directory"
run() { # LEVEL
    local arguments=()
    [ "$1" != memory ] || arguments=("$memory_only")
    say "running the $1 tests"
    rm -f "$directory/$1"-*.profraw
    # A test that fails has reached its code all the same; scripts/test.sh is there to notice.
    LLVM_PROFILE_FILE="$directory/$1-%m.profraw" ZKASIO_SIM_SEEDS=${ZKASIO_SIM_SEEDS:-50} \
        "$root/build/coverage/tests/$(program_of "$1")" "${arguments[@]}" > "$work/$1.log" 2>&1 ||
        { echo "   some fail:"; tail -n 3 "$work/$1.log"; }
    tail -n 2 "$work/$1.log" | head -n 1
}
for level in "${all[@]}"; do run "$level"; done

# Sets FILE.json to what these levels have reached.
export_of() { # FILE LEVEL...
    local to=$1 profiles=() objects=() level
    shift
    for level in "$@"; do
        profiles+=("$directory/$level"-*.profraw)
        objects+=(-object "$root/build/coverage/tests/$(program_of "$level")")
    done
    llvm-profdata-19 merge -sparse --failure-mode=all "${profiles[@]}" -o "$work/merged.profdata"
    llvm-cov-19 export -instr-profile "$work/merged.profdata" "${objects[@]:1}" "$root/lib" > "$to" 2> "$work/cov.log" ||
        { cat "$work/cov.log" >&2; die "llvm-cov has failed"; }
}
export_of "$work/first.json" unit simulation
reports=("unit and simulation=$work/first.json")
if [ ${#levels[@]} -gt 0 ]; then
    export_of "$work/second.json" "${all[@]}"
    reports+=("with ${levels[*]}=$work/second.json")
fi
python3 -B "$root/scripts/coverage.py" "$root/lib/zkasio" "${look_at:+--missing=$look_at}" \
    "${require:+--require=$require}" "${reports[@]}"
