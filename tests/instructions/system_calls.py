#!/usr/bin/env -S python3 -B
"""How many system calls a get takes, alone and beside an added watch: fails when they are more than a get needs.

    system_calls.py SERVERS zkasio_instructions

The C library sends and receives in two pieces each, and Asio arms each wait for the socket with an epoll_ctl(). The
coroutine goes on behind the turn in which its answer came: as a post, it would be one more wait for events. Where a
watch may tell of something at any time, the next frame is looked at before the C library reads it.
"""

import collections
import re
import subprocess
import sys

FEW, MANY = 20, 220
MOST, MOST_MORE = 6.2, 1.1
OF_THE_CLOCK = {"clock_gettime", "gettimeofday"}  # the kernel is not asked, but under valgrind


def calls(servers, program, scenario, n):
    command = ["valgrind", "--tool=none", "--trace-syscalls=yes", program, scenario, str(n), servers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = collections.Counter(re.findall(r"^SYSCALL\[\d+,\d+\]\( *\d+\) (?:sys_)?(\w+)", done.stderr, re.MULTILINE))
    return collections.Counter({name: count for name, count in found.items() if name not in OF_THE_CLOCK})


def for_each(servers, program, scenario):
    few, many = (calls(servers, program, scenario, n) for n in (FEW, MANY))
    each = {name: (many[name] - few[name]) / (MANY - FEW) for name in many}
    text = ", ".join(f"{name} {count:.2f}" for name, count in sorted(each.items()) if abs(count) >= 0.01)
    print(f"{scenario}: {sum(each.values()):.2f} system calls ({text})")
    return sum(each.values())


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    alone = for_each(*sys.argv[1:], "get_at")
    watched = for_each(*sys.argv[1:], "get_beside_watch_at")
    if alone > MOST or watched > alone + MOST_MORE:
        sys.exit(f"a get takes at most {MOST}, and beside a watch at most {MOST_MORE} more")


if __name__ == "__main__":
    main()
