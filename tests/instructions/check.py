#!/usr/bin/env python3
"""How many instructions zkasio takes for an operation, compared with the record: see --help."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

RECORD = pathlib.Path(__file__).with_name("record.json")
SCENARIOS = ("get", "set", "cycle", "waiters", "cache")
FEW, MANY = 200, 1200
ALLOWED = 1.05
SKIPPED = 77


def instructions(program, scenario, n):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, scenario, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return int(found.group(1))


def for_each(program, scenario):
    """Without what a run costs that does nothing."""
    return (instructions(program, scenario, MANY) - instructions(program, scenario, FEW)) / (MANY - FEW)


def main():
    parser = argparse.ArgumentParser(
        description="Counts the instructions of an operation with callgrind, and fails when there are over 5 % more "
        "than the record says. The counts depend on compiler and options: others than those of the record are skipped.")
    parser.add_argument("program", help="zkasio_instructions")
    parser.add_argument("built", help="compiler and options, as the record names them")
    parser.add_argument("--record", action="store_true", help="write the record: after a change that is worth its price")
    arguments = parser.parse_args()

    if arguments.record:
        counted = {s: round(for_each(arguments.program, s)) for s in SCENARIOS}
        RECORD.write_text(json.dumps({"built": arguments.built, "instructions": counted}, indent=4) + "\n")
        return 0
    record = json.loads(RECORD.read_text())
    if arguments.built != record["built"]:
        print(f"SKIPPED: built by {arguments.built}, the record is of {record['built']}")
        return SKIPPED
    too_many = False
    for scenario in SCENARIOS:
        count, recorded = round(for_each(arguments.program, scenario)), record["instructions"][scenario]
        ratio = count / recorded
        too_many = too_many or ratio > ALLOWED
        print(f"{scenario:10} {count:8} instructions, {ratio:.3f} x the record's {recorded}")
    if too_many:
        print(f"More than 5 % above the record. If the change is worth it: {sys.argv[0]} --record PROGRAM BUILT")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
