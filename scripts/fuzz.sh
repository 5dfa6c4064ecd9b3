#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang, AddressSanitizer and UBSan, and runs each for a while.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/fuzz.sh [FUZZER...] [--seconds N] [--list]

  FUZZER       only these; the first comment of tests/fuzz/FUZZER.cpp says what it reads and what it checks
  --seconds N  each for so long (60)
  --list       prints the fuzzers
  --help       this text

Each fuzzer begins with its seeds, tests/fuzz/corpus/FUZZER, and with what earlier runs have found, which is kept in
build/fuzz/corpus/FUZZER. Exits with 1 if one has found a text that breaks a rule: the text is kept, and the command that
repeats it is printed. Add such a text to the seeds when the defect is mended.
USAGE
}

all=()
for source in "$root"/tests/fuzz/*.cpp; do all+=("$(basename "$source" .cpp)"); done
fuzzers=() seconds=60
while [ $# -gt 0 ]; do
    case $1 in
        --seconds)
            [[ ${2:-} =~ ^[1-9][0-9]{0,6}$ ]] || usage_error "--seconds needs a number"
            seconds=$2
            shift
            ;;
        --list) printf '%s\n' "${all[@]}"; exit ;;
        -h | --help) usage; exit ;;
        -*) usage_error "unknown option $1" ;;
        *)
            [[ " ${all[*]} " == *" $1 "* ]] || usage_error "no fuzzer $1; there are ${all[*]}"
            fuzzers+=("$1")
            ;;
    esac
    shift
done
[ ${#fuzzers[@]} -gt 0 ] || fuzzers=("${all[@]}")

install_packages clang-19 libclang-rt-19-dev
build fuzz "${fuzzers[@]/#/zkasio_fuzz_}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

directory=$root/build/fuzz findings=()
table=("fuzzer|runs|edges seen|findings")
for name in "${fuzzers[@]}"; do
    program=$directory/tests/fuzz/zkasio_fuzz_$name log=$work/$name.log
    found=$directory/findings/$name-
    mkdir -p "$directory/corpus/$name" "$directory/findings"
    say "fuzzing $name for $seconds s"
    status=0
    # Waited for, so that Ctrl-C ends it.
    nice "$program" -max_total_time="$seconds" -max_len=2000 -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$found" "$directory/corpus/$name" "$root/tests/fuzz/corpus/$name" > "$log" 2>&1 &
    wait $! || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    result=none
    if [ "$status" -ne 0 ]; then
        tail -n 60 "$log"
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        echo "again: $program ${input:-(no input was kept)}"
        findings+=("$name") result=${input:-"exit code $status"}
    fi
    table+=("$name|${runs:-?}|${edges:-?}|$result")
done
echo
printf '%s\n' "${table[@]}" | awk -F'|' '{ printf "%-16s %10s %12s  %s\n", $1, $2, $3, $4 }'
[ ${#findings[@]} -eq 0 ] || die "findings of ${findings[*]}"
