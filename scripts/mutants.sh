#!/usr/bin/env bash
# Breaks the library in one place after another, and looks whether a test notices.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/mutants.sh [FILE...] [--jobs N]

  FILE      only mutants of sources, or of tables, whose path contains this: queue_order, or session.toml
  --jobs N  so many at once (as many as there are cores)
  --help    this text

The mutants are in tests/mutants/*.toml, each with the test that kills it:

  file    below lib/zkasio; stays as it is: the broken text is compiled from a copy
  before  a part of the file that must occur once, so that a mutant of moved code is still the same one
  after   what replaces that part
  test    below tests: a file of which at least one test has to fail, crash or hang
  cases   only these test cases of it, as a test spec of Catch2: for a table that says what a run of all schedules finds
  survives  instead of that: why no test can notice

Exits with 1 if a mutant survives that must not, if one that is said to survive is killed, and if a text is not found.
USAGE
}

files=() jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
        --jobs) jobs=${2:?--jobs needs a number}; shift ;;
        -h | --help) usage; exit ;;
        -*) usage_error "unknown option $1" ;;
        *) files+=("$1") ;;
    esac
    shift
done

# shellcheck disable=SC2119
install_packages
# What the tests link: the library, whose broken source replaces its own, and what the tests share.
targets=(zkasio zkasio_test_support zkasio_discovery_with_detail zkasio_tls_with_detail
    zkasio_sasl_with_detail zkasio_kerberos_with_detail)
build test "${targets[@]}"
start_servers 1  # for the tests of TLS
export ZKASIO_TEST_SERVERS=$servers
python3 -B "$root/scripts/mutants.py" --scratch "$work" --jobs "$jobs" "${files[@]}"
