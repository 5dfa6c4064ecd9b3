#!/usr/bin/env bash
# Runs the simulation at seeds that nobody has tried yet, on all cores, until the time is over or a test fails.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/simulate.sh [TEST] [--seed N] [--seconds S]

  TEST         only the tests whose name contains this: "mutex, simulated: connections break", say
  --seed N     begin with this seed, instead of one at random; it is printed
  --seconds S  for about so long (60)
  --help       this text

Exits with 0 if every check has passed, and with 1 if one has failed: then the log of that run is printed, and the
command that repeats it. One seed does so again and again, for as long as the program is the same.
USAGE
}

test= seed= seconds=60
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --seed | --seconds)
            [[ ${2:-} =~ ^[1-9][0-9]{0,14}$ ]] || usage_error "$1 needs a number"
            case $1 in
                --seed) seed=$2 ;;
                --seconds) seconds=$2 ;;
            esac
            shift 2
            ;;
        -*) usage_error "unknown option $1" ;;
        *)
            [ -z "$test" ] || usage_error "one TEST at most, not also $1"
            test=$1
            shift
            ;;
    esac
done
[ -n "$seed" ] || seed=$(shuf -i 1-1000000000 -n 1)

install_packages libmimalloc-dev  # schedules are many small allocations
build simulate zkasio_simulation_tests

# In Catch2's test specs a comma means "or", and brackets a tag.
spec="*$(printf '%s' "$test" | sed 's/[\\,"[]/\\&/g')*"
tests=$root/build/simulate/tests/zkasio_simulation_tests
# As in tests/CMakeLists.txt: Catch2 2 has to be told that it is a failure when no test has that name.
strict=()
if [[ $("$tests" --libidentify) =~ version:\ +2[.] ]]; then strict=(-w NoTests); fi
# The linker's cache of libraries: none, where nothing could be installed.
allocator=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2> /dev/null | awk '/libmimalloc[.]so/ { print $NF; exit }')
round=200  # seeds for each random test; a directed one takes a few of them
cores=$(nproc)

# Rounds of all tests, each with seeds of its own.
rounds() { # NUMBER OF THE CORE
    local next=$((seed + $1 * round)) running=
    trap 'kill "$running" 2> /dev/null; exit 1' TERM
    while [ "$SECONDS" -lt "$seconds" ]; do
        ZKASIO_SIM_FIRST_SEED=$next ZKASIO_SIM_SEEDS=$round LD_PRELOAD=$allocator \
            "$tests" "${strict[@]}" "$spec" > "$work/round.$1" 2>&1 &
        running=$!
        wait "$running" || { mv "$work/round.$1" "$work/failed"; return 1; }
        cat "$work/round.$1" >> "$work/passed"
        next=$((next + cores * round))
    done
}

say "simulating at seeds from $seed on, on $cores cores, for $seconds s"
SECONDS=0
for core in $(seq 0 $((cores - 1))); do
    rounds "$core" &
done
for _ in $(seq "$cores"); do
    wait -n && continue
    cat "$work/failed"
    # A crash leaves no time for more than the seed.
    crashed=$(sed -n 's/^ .*, seed \([0-9]*\)$/\1/p' "$work/failed" | tail -1)
    grep -q '^again: ' "$work/failed" || [ -z "$crashed" ] ||
        echo "again: ZKASIO_SIM_SEED=$crashed $tests ${strict[*]} '$spec'"
    exit 1
done
# "drops: 200 seeds, 1100.5 a second"
awk '/ seeds, .* a second$/ { seeds += $(NF - 4); busy += $(NF - 4) / $(NF - 2) }
    END { if (busy) printf "%d random schedules, %d a second on each core; ", seeds, seeds / busy; print "all passed" }
' "$work/passed"
