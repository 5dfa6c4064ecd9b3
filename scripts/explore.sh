#!/usr/bin/env bash
# Runs all schedules of a few users of a recipe, instead of some at random as scripts/simulate.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/explore.sh [RECIPE...] [--users N] [--faults N] [--delays N] [--late] [--together]
                          [--only TEXT] [--seconds S]

  RECIPE       mutex, shared_mutex, semaphore, multi_mutex, election, double_barrier, atomic_counter, work_queue (all)
  --users N    so many users, of two clients in turn (3)
  --faults N   each combination of so many faults at most (1): connections that break, sessions that expire, nodes that
               an operator deletes; each at any time
  --delays N   schedules with so many delays at most (1), or "all". Without a delay, servers, connections and users take
               turns, and each goes on until it has nothing left to do. A delay passes over one step. Faults and
               cancellations come at any time, and cost none
  --late       the turns of each user's executor are steps of their own
  --together   that all answers reach a client in one turn of its loop is a choice, too
  --only TEXT  only the combinations of faults whose names, as they are printed, contain this: "expire 1"
  --seconds S  for one combination of faults (600); then the search ends without having run all
  --help       this text

Exits with 0 if all schedules were run and every check has passed. Otherwise prints the log of a schedule that failed,
or which search did not end.
USAGE
}

recipes=() users=3 faults=1 delays=1 also='' seconds=600
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --users | --faults | --delays | --seconds)
            [[ "${2:-}" =~ ^[0-9]{1,6}$ || "$1 ${2:-}" = "--delays all" ]] || usage_error "$1 needs a number"
            case $1 in
                --users) users=$2 ;;
                --faults) faults=$2 ;;
                --delays) delays=${2#all} ;;
                --seconds) seconds=$2 ;;
            esac
            shift 2
            ;;
        --only) export ZKASIO_EXPLORE_ONLY=${2:?--only needs a text}; shift 2 ;;
        --late | --together) also+=" ${1#--}"; shift ;;
        mutex | shared_mutex | semaphore | multi_mutex | election | double_barrier | atomic_counter | work_queue)
            recipes+=("$1"); shift ;;
        *) usage_error "unknown argument $1" ;;
    esac
done

install_packages libmimalloc-dev
build simulate zkasio_simulation_tests
tests=$root/build/simulate/tests/zkasio_simulation_tests
# The linker's cache of libraries: none, where nothing could be installed.
allocator=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2> /dev/null | awk '/libmimalloc[.]so/ { print $NF; exit }')
[ ${#recipes[@]} -gt 0 ] ||
    recipes=(mutex shared_mutex semaphore multi_mutex election double_barrier atomic_counter work_queue)
status=0
for recipe in "${recipes[@]}"; do
    say "exploring $recipe"
    # In Catch2's test specs a comma means "or".
    ZKASIO_EXPLORE=$also ZKASIO_EXPLORE_DELAYS=$delays ZKASIO_EXPLORE_USERS=$users \
        ZKASIO_EXPLORE_FAULTS=$faults ZKASIO_EXPLORE_SECONDS=$seconds \
        LD_PRELOAD=$allocator "$tests" "$recipe\\, all schedules*" || status=1
done
exit "$status"
