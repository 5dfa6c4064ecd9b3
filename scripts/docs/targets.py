#!/usr/bin/python3
"""What zkasio is to reach, and what it has reached: a table for each part of scripts/bench.sh.

    targets.py DATA [PART...]   DATA is what plots.py measure has written

A target compares figures of one run: for each round a ratio, of which the median counts. Exits with 0 also when a
target is missed: a measurement is no test.
"""

import json
import math
import statistics
import sys
from pathlib import Path


class Missing(Exception):
    """A figure that was not measured: a library is not installed, say."""


class Figures:
    """The figures of one part."""

    def __init__(self, tree):
        self.tree = tree

    def rounds(self, *names):
        leaf = self.tree
        for name in names:
            if not isinstance(leaf, dict) or name not in leaf:
                raise Missing(", ".join(names))
            leaf = leaf[name]
        return leaf if isinstance(leaf, list) else [leaf]

    def median(self, *names):
        return statistics.median(self.rounds(*names))

    def largest(self, *names):
        return max(self.rounds(*names))

    def ratio(self, ours, theirs):
        """The median of what a round's `ours` is to its `theirs`; both are tuples of names."""
        pairs = [(a, b) for a, b in zip(self.rounds(*ours), self.rounds(*theirs)) if b]
        if not pairs:
            raise Missing(", ".join(theirs))
        return statistics.median(a / b for a, b in pairs)

    def best(self, ours, others, better=min):
        """The ratio to the best of those of `others` that were measured."""
        measured = []
        for other in others:
            try:
                measured.append((self.median(*other), other))
            except Missing:
                pass
        if not measured:
            raise Missing("other libraries")
        return self.ratio(ours, better(measured)[1])


class Row:
    """`measured` computes one number from Figures. It is to be `at_least` or `at_most` the target. `why`: what is known
    of a target that is missed."""

    def __init__(self, part, what, measured, at_most=None, at_least=None, why=None):
        self.part, self.what, self.measured, self.why = part, what, measured, why
        self.at_least = at_least is not None
        self.limit = at_least if self.at_least else at_most

    def target(self):
        return f"{'>=' if self.at_least else '<='} {number(self.limit)}"

    def verdict(self, value):
        met = value >= self.limit if self.at_least else value <= self.limit
        if met:
            return "met"
        by = f"{abs(value / self.limit - 1) * 100:.0f} %" if self.limit and value else number(abs(value - self.limit))
        return f"missed by {by}" + (f": {self.why}" if self.why else "")


def number(value):
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def waiters(n):
    return f"{n} waiters in one process, per waiter"


def sessions(s, n):
    return f"{s} sessions with {n} waiters each, per waiter"


def processes(p, n):
    return f"{p} processes with {n} waiters each, per waiter"


# Why targets are missed, from profiles: docs/performance.md.
WAITER = "113 allocations, a coroutine and two requests for each"
OPERATION = "coroutine, strand and Asio's reactor"
TWO_CORES = "server and clients share two cores, so the client's processor time is in it"
BATCHES = "64 000 reads and 640 lists of names, 256 in a request, are 253; some are not full"
INSTANCE = "a flat profile: kernel, JSON, the parts of cache and roster"

BY_EACH, CURATOR = "zkasio, a watch for each node", "Curator's CuratorCache"
CYCLE = "uncontended acquire + release, per cycle"
BACK_TO_BACK, IDLE = (f"hand-off from session to session, {how}" for how in ("back to back", "after 10 ms idle"))


def of(table, ours, theirs, column):
    return lambda f: f.ratio((table, ours, column), (table, theirs, column))


def median(*names):
    return lambda f: f.median(*names)


def of_64000(column):  # with --quick there are fewer
    return lambda f: 64000 * f.ratio(("zkasio", column), ("zkasio", "nodes"))


def get(column, row):
    return lambda f: f.ratio((column, row, "zkasio"), (column, row, "raw"))


ROWS = [
    # ------------------------------------------------------------------------------------------------- a lock
    Row("lock", "1000 waiters, one process: client CPU / C by hand", of(waiters(1000), "zkasio", "raw local0", "CPU us"),
        at_most=1.3, why=WAITER),
    Row("lock", "1000 waiters: hand-offs/s / C by hand", of(waiters(1000), "zkasio", "raw local0", "hand-offs/s"),
        at_least=0.8, why=WAITER),
    Row("lock", "1000 waiters: requests for each", median(waiters(1000), "zkasio", "requests"), at_most=2.1),
    Row("lock", "1000 waiters: bytes received for each", median(waiters(1000), "zkasio", "bytes rcvd"), at_most=300),
    Row("lock", "1000 waiters: drain/s / go-zk", of(waiters(1000), "zkasio", "gozk", "drain/s"), at_least=12,
        why=WAITER),
    Row("lock", "1000 waiters: drain/s / Curator", of(waiters(1000), "zkasio", "curator", "drain/s"), at_least=20),
    Row("lock", "10 000 waiters: client CPU / C by hand", of(waiters(10000), "zkasio", "raw local0", "CPU us"),
        at_most=1.3, why=WAITER),
    Row("lock", "10 000 waiters: KiB for each", median(waiters(10000), "zkasio", "KiB"), at_most=2, why=WAITER),
    Row("lock", "100 000 waiters: client CPU for each / 10 000",
        lambda f: f.median(waiters(100000), "zkasio", "CPU us") / f.median(waiters(10000), "zkasio", "CPU us"),
        at_most=1.5),
    *[Row("lock", f"1000 sessions x 5: {what} / C by hand", of(sessions(1000, 5), "zkasio", "raw local0", column), **to)
      for what, column, to in (
          ("drain/s", "drain/s", {"at_least": 1 / 1.5}),
          ("memory", "KiB", {"at_most": 1.5, "why": "73 KiB for a session, beside 0.6: C by hand keeps no listing"}))],
    Row("lock", "uncontended, release awaited: client CPU / C by hand",
        of(CYCLE, "zkasio, awaited", "raw, awaited", "CPU us"), at_most=1.15, why=OPERATION),
    Row("lock", "uncontended, release awaited: cycles/s / C by hand",
        of(CYCLE, "zkasio, awaited", "raw, awaited", "cycles/s"), at_least=0.92),
    Row("lock", "uncontended, release not awaited: cycles/s / C by hand",
        of(CYCLE, "zkasio, not awaited", "raw, not awaited", "cycles/s"), at_least=0.92, why=OPERATION),
    Row("lock", "4 processes x 25: hand-offs/s / C by hand", of(processes(4, 25), "zkasio", "raw local0", "hand-offs/s"),
        at_least=0.8, why=TWO_CORES),
    Row("lock", "4 processes x 25: time of a grant between processes / C by hand, standard recipe",
        of(processes(4, 25), "zkasio", "raw standard", "ms/crossing"), at_most=1.1, why=TWO_CORES),
    Row("lock", "4 processes x 25: drain/s / go-zk", of(processes(4, 25), "zkasio", "gozk", "drain/s"), at_least=1),
    Row("lock", "session to session, back to back: p50 / C by hand", of(BACK_TO_BACK, "zkasio", "raw", "p50 us"),
        at_most=1.05, why=f"five requests to four; {OPERATION}"),
    Row("lock", "session to session, after 10 ms idle: p50 / C by hand", of(IDLE, "zkasio", "raw", "p50 us"),
        at_most=1.05, why=f"five requests to four; {OPERATION}"),
    # ------------------------------------------------------------------------------------------- a cohort lock
    Row("cohort", "1000 waiters, one process: grants/s", median("cohort_mutex, 1000", "grants/s"), at_least=500000),
    Row("cohort", "10 000 waiters, one process: grants/s", median("cohort_mutex, 10000", "grants/s"), at_least=500000,
        why="1000 waiters: met; 10 000 are more than the processor's caches hold"),
    Row("cohort", "1000 waiters: requests for each grant", median("cohort_mutex, 1000", "requests"), at_most=0.1),
    Row("cohort", "10 000 waiters: bytes for each", median("cohort_mutex, 10000", "bytes/waiter"), at_most=500),
    Row("cohort", "uncontended: cycles/s", median("cohort_mutex, uncontended", "grants/s"), at_least=1000000),
    Row("cohort", "uncontended: requests for each", median("cohort_mutex, uncontended", "requests"), at_most=0.001),
    Row("cohort", "4 processes x 250: grants/s / mutex",
        lambda f: f.ratio(("cohort_mutex, 4x250", "grants/s"), ("mutex, 4x250", "grants/s")), at_least=20,
        why=TWO_CORES),
    # --------------------------------------------------------------------------------------- single operations
    *[Row("get", f"{what}, one at a time: client CPU / C by hand", get("CPU us", row), at_most=1.15, why=OPERATION)
      for what, row in (("get", "1"), ("set", "set"), ("create", "create"))],
    *[Row("get", f"{what}, one at a time: operations/s / C by hand", get("per second", row), at_least=0.95,
          why=OPERATION)
      for what, row in (("get", "1"), ("set", "set"), ("create", "create"))],
    *[Row("get", f"get, {depth} under way: client CPU / C by hand", get("CPU us", depth), at_most=1.15, why=OPERATION)
      for depth in ("16", "256")],
    # ------------------------------------------------------------------------------------------------- a cache
    Row("cache", "requests until ready, of 64 000 nodes", of_64000("requests"), at_most=2000),
    Row("cache", "time until ready, s", median("zkasio", "ready s"), at_most=1),
    Row("cache", "entries in the server's tables of watches (one watch: two)", median("zkasio", "watches"), at_most=2),
    Row("cache", "server's CPU until ready / a watch for each node",
        lambda f: f.ratio(("zkasio", "server cpu s"), (BY_EACH, "server cpu s")), at_most=1 / 20),
    *[Row("cache", f"{what} / best of Curator's and kazoo's", lambda f, c=column: f.best(
        ("zkasio", c), [(n, c) for n in ("Curator's TreeCache", CURATOR, "kazoo's TreeCache")]), at_most=limit)
      for what, column, limit in (("client CPU until ready", "cpu s", 0.5), ("time until ready", "ready s", 0.8),
                                  ("server's CPU until ready", "server cpu s", 0.2))],
    Row("cache", "bytes for each node of our own, beyond path and data", median("zkasio", "alone B"), at_most=250),
    Row("caches", "a change: requests", median("zkasio", "change requests"), at_most=1),
    Row("caches", "requests after a cut, of 64 000 nodes", of_64000("cut requests"), at_most=500, why=BATCHES),
    Row("caches", "a member joins a group of 10 000: bytes for each observer",
        median("group", "zkasio", "joins bytes"), at_most=400),
    Row("caches", "a member leaves it: bytes for each observer", median("group", "zkasio", "leaves bytes"),
        at_most=400),
    Row("caches", "50 caches of 10 000 nodes, their server killed: s until all are current",
        median("killed", "zkasio", "current s"), at_most=5),
    Row("caches", "their requests / with a watch for each node",
        lambda f: f.ratio(("killed", "zkasio", "requests each"), ("killed", BY_EACH, "requests each")),
        at_most=1 / 50),
    # ---------------------------------------------------------------------------------------------- an election
    Row("election", "resignation to the next leader / best of Curator's and kazoo's",
        lambda f: f.best(("resigns", "zkasio"), [("resigns", "curator"), ("resigns", "kazoo")]), at_most=1),
    Row("election", "killed leader's node gone to the next leader, ms", median("gone", "zkasio"), at_most=2),
    Row("pick", "round robin, 1000 instances: ns / under a std::mutex",
        lambda f: f.ratio(("round robin", "1000", "ns"), ("(std::mutex)", "1000", "ns")), at_most=1.5,
        why="a lock-free pick: slower alone, three times as fast beside another thread"),
    # ----------------------------------------------------------------------------------------------- many members
    *[Row("members", f"{what} of 10 000 changes, one at a time: CPU us more than of 10",
          lambda f, r=row: f.median(f"{r}, one", "CPU us") - f.median(f"{r} of 10, one", "CPU us"), at_most=50,
          why=INSTANCE)
      for what, row in (("an instance", "provider"), ("a member", "group"))],
    *[Row("members", f"all of 10 000 {what} change each second: CPU us for each, I/O included",
          median(f"{row}, all each second", "CPU us"), at_most=50, why=INSTANCE)
      for what, row in (("instances", "provider"), ("members", "group"))],
    Row("members", "a provider's 10 000 instances all update each second: % of a core",
        median("provider, all each second", "core %"), at_most=30, why=INSTANCE),
    Row("members", "1000 partitions x 50 members: settled after all come / settle",
        median("partitions", "joined, settles"), at_most=2),
    Row("members", "1000 partitions x 50 members: settled after one goes / settle",
        median("partitions", "left, settles"), at_most=2),
    # ------------------------------------------------------------------------------------------------------ bulk
    *[Row("bulk", f"{what}: time / raw pipelining", lambda f, w=row: f.ratio((w, "zkasio", "s"), (w, "raw", "s")),
          at_most=1.2)
      for what, row in (("20 000 nodes, created", "create"), ("read", "get"), ("remove_recursive", "remove"))],
    # -------------------------------------------------------------------------------------------------- structures
    Row("structures", "additions/s to one number / best of Curator's and kazoo's",
        lambda f: f.best(("additions/s", "zkasio"), [("additions/s", "curator"), ("additions/s", "kazoo")], max),
        at_least=1),
    Row("structures", "additions missed", lambda f: f.largest("additions missed", "zkasio"), at_most=0),
    Row("structures", "queue, take(): items/s / best of Curator's and kazoo's",
        lambda f: f.best(("zkasio take", "items/s"), [("curator plain", "items/s"), ("kazoo queue", "items/s")], max),
        at_least=1),
    Row("cuts", "additions wrong over 50 cuts", lambda f: f.largest("additions wrong", "zkasio"), at_most=0),
    *[Row("cuts", f"{how}: items {what} over 50 cuts", lambda f, h=how, w=what: f.largest(f"zkasio {h}", w), at_most=0)
      for how in ("take", "receive") for what in ("lost", "doubled", "left behind")],
    # ---------------------------------------------------------------------------------------------------- fail-over
    Row("fail-over", "the servers' leader killed: s until a lock is granted, beyond the election",
        lambda f: statistics.median(a - b for a, b in zip(f.rounds("leader", "lock s"), f.rounds("leader", "servers s"))),
        at_most=0.5),
    Row("fail-over", "all servers away for 7/5 T, T = 5 s: s until a lock is granted, once they write",
        median("ensemble", "lock s"), at_most=2.5),
    # -------------------------------------------------------------------------------------------------------- scale
    *[Row("scale", f"{row}: requests for each of 1000 processes / of 100",
          lambda f, r=row: f.median(r, "1000", "requests") / f.median(r, "100", "requests"), at_most=limit)
      for row, limit in (("mutex: three turns each", 1.1), ("election: all stand", 1.1), ("partitioner: all come", 1.3),
                         ("queue: four items for each consumer", 1.5))],
    *[Row("scale", f"{row}: requests in the busiest second, 1000 processes / answered in a second",
          lambda f, r=row: f.median(r, "1000", "busiest s") / 5000, at_most=limit)
      for row, limit in (("mutex: three turns each", 1.1), ("group: all connections break", 1.1),
                         ("queue: one item, all wait", 1.1), ("queue: four items for each consumer", 3))],
    Row("scale", "mutex, 1000 processes: turns of each other one during the longest wait",
        median("mutex: three turns each", "1000", "unfair"), at_most=1.1),
]


def table(part, tree, rows=None):
    """One line for each row: what, target, measured, verdict."""
    figures, lines = Figures(tree), []
    for row in [r for r in ROWS if r.part == part] if rows is None else rows:
        try:
            value = row.measured(figures)
        except Missing as missing:
            lines.append((row.what, row.target(), "-", f"not measured: {missing}"))
            continue
        if not math.isfinite(value):
            lines.append((row.what, row.target(), "-", "not measured: no number"))
            continue
        lines.append((row.what, row.target(), number(value), row.verdict(value)))
    return lines


def markdown(part, lines):
    return "\n".join([f"| {part} | target | measured | verdict |", "|---|---|---|---|",
                      *("| " + " | ".join(line) + " |" for line in lines)])


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    all_figures = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    for part in arguments[1:] or all_figures:
        if part in all_figures:
            print(markdown(part, table(part, all_figures[part])) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
