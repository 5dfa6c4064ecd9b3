#!/usr/bin/env python3
"""Judges the histories of a soak: check.py DIRECTORY. Prints a summary; exits with 1 if a promise was broken.

Every judgement allows for what the histories do not know: an operation whose end is not there, because its process was
killed, and one with the outcome "unknown" may have had its effect or not.
"""

import bisect
import collections
import glob
import json
import os
import sys

SECOND = 1_000_000_000
PERMITS = 3  # of the semaphore
OPENING = 1000  # of each account
STALL = 35  # seconds without a grant while somebody waits, beside those of faults
# Where other libraries take part, one of them may leave a node behind until its session ends.
STALL_WITH_PEERS = 120
UNFAIR = ("unfair", "slots", "/soak/slots")  # who waits may wait for ever
PEER_SESSION = 10 * SECOND
SERVER_FAULTS = ("server-killed", "server-stopped", "all-servers-killed", "server-cut-off-from-peers",
                 "server-cut-off-from-clients", "disk-full")
BUSY = 2 * SECOND  # what a busy machine may need for what is to happen at once
KILL_MARGIN = SECOND // 5  # a process notes every 100 ms what it has lost


class Grant:
    """One round under a lock, of one process."""

    __slots__ = ("process", "operation", "locks", "kind", "wanted", "got", "until", "sampled", "let", "lost", "ended",
                 "token", "tokens", "paths", "let_held", "cancelled", "margin")

    def __init__(self, process, operation, locks, kind, wanted):
        self.process, self.operation, self.locks, self.kind, self.wanted = process, operation, locks, kind, wanted
        self.got = self.until = self.sampled = self.let = self.lost = self.ended = None
        self.token, self.tokens, self.paths = (0, 0), {}, ()
        self.let_held = self.cancelled = False
        self.margin = 0

    def token_at(self, lock):
        """Of several locks, each has a token of its own."""
        return self.tokens.get(lock, self.token)

    def __str__(self):
        return (f"{self.process} #{self.operation} {','.join(self.locks)} {self.kind} "
                f"token {self.token[0]}.{self.token[1]}")


class Operation:
    """One attempt to change something."""

    __slots__ = ("process", "verb", "arguments", "outcome", "result", "grant")

    def __init__(self, process, verb, arguments):
        self.process, self.verb, self.arguments = process, verb, arguments
        self.outcome, self.result = "unknown", []  # without an end: killed


class Run:
    """All that was written down."""

    def __init__(self, directory):
        self.grants, self.operations = [], []
        self.problems = []
        self.killed, self.faults, self.removals = {}, {}, {}
        self.healed, self.continued = [], collections.defaultdict(list)
        self.final, self.seen = {}, None
        self.started = self.finished = self.used = self.timeout = None
        self.sessions = set()
        self.first, self.last = None, 0
        for file in sorted(glob.glob(os.path.join(directory, "history", "*.txt"))):
            self._read(file, os.path.basename(file)[:-len(".txt")])

    def _read(self, file, process):
        grants, operations = {}, {}
        with open(file, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # killed within a write
                words = line.split()
                when, verb, number, rest = int(words[0]), words[1], words[2], words[3:]
                self.first = min(self.first or when, when)
                self.last = max(self.last, when)
                if verb == "want":
                    grants[number] = Grant(process, number, tuple(rest[0].split(",")), rest[1], when)
                elif verb in ("got", "lease", "lost", "let", "free", "failed", "cancelled", "margin"):
                    self._round(grants[number], verb, when, rest)
                elif verb == "end":
                    operations[number].outcome, operations[number].result = rest[0], rest[1:]
                elif verb in ("add", "id", "move", "put", "take", "finish", "commit"):
                    operations[number] = Operation(process, verb, rest)
                    if verb == "commit":
                        operations[number].grant = grants[rest[0]]
                else:
                    self._event(process, verb, when, number, rest)
        self.grants += grants.values()
        self.operations += operations.values()

    @staticmethod
    def _round(grant, verb, when, rest):
        if verb == "got":
            grant.got = grant.sampled = when
            grant.token, grant.until = (int(rest[0]), int(rest[1])), int(rest[2])
            grant.paths = tuple(rest[3].split(",")) if len(rest) > 3 else ()
            if len(rest) > 4:
                each = (tuple(map(int, token.split("."))) for token in rest[4].split(","))
                grant.tokens = dict(zip(grant.locks, each, strict=True))
            if grant.kind == "slot":  # each number is a lock
                grant.locks, grant.kind = grant.paths, "x"
        elif verb == "lease":
            grant.sampled, grant.until = when, int(rest[0])
        elif verb == "lost":
            grant.lost = when
        elif verb == "let" and grant.let is None:
            grant.let, grant.let_held = when, rest[0] == "held"
        elif verb == "cancelled" and grant.let is None:
            grant.let, grant.let_held, grant.cancelled = when, rest[0] == "held", True
        elif verb == "margin":
            grant.margin = int(rest[0])
        elif verb == "failed":
            grant.ended = when

    def _event(self, process, verb, when, number, rest):
        if verb == "bad":
            self.problems.append(f"{process}: {' '.join(rest)}")
        elif verb == "session":
            if rest[0] == "connected":
                self.sessions.add(rest[1])
        elif verb == "kill":
            self.killed[rest[0]] = when
        elif verb == "continue":
            self.continued[rest[0]].append(when)
        elif verb == "fault":
            self.faults[number] = (when, rest[0])
        elif verb == "healed":
            self.healed.append(when)
        elif verb == "removing":
            self.removals[rest[0]] = when
        elif verb == "final":
            self.final[tuple(rest[:-1])] = int(rest[-1])
        elif verb == "seen":
            self.seen = json.loads(" ".join(rest))
        elif verb == "running":
            self.started, self.timeout = when, int(float(rest[0]) * SECOND)
        elif verb == "finished":
            self.finished = when
        elif verb == "used":
            self.used = rest[0]

    def fault_times(self, kinds=None):
        """When something was broken: from a fault until all servers served again. Sorted, not overlapping."""
        spans = []
        healed = sorted(self.healed)
        for when, kind in sorted(self.faults.values()):
            if kinds and kind not in kinds:
                continue
            at = bisect.bisect(healed, when)
            end = healed[at] if at < len(healed) else self.last
            if spans and when <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([when, end])
        return spans


class Judge:
    """Judges a run. `table`: what was looked at, how often, and how many violations."""

    def __init__(self, run):
        self.run = run
        self.server_faults = None
        self.violations, self.table, self.facts = list(run.problems), [], []
        if run.problems:
            self.table.append(("processes, by themselves", 0, len(run.problems)))
        for check in (self.owners, self.told, self.operators, self.tokens, self.commits, self.progress, self.counter,
                      self.ids, self.moves, self.queue, self.takes, self.views, self.end):
            before = len(self.violations)
            what, count = check()
            self.table.append((what, count, len(self.violations) - before))

    def broken(self, text):
        self.violations.append(text)

    # -------------------------------------------------------------------------------------------------------- locks

    def interval(self, g):
        """For how long the process was entitled to believe that it has the lock: not a moment more."""
        if g.got is None or not g.until or g.until <= g.got:
            return None
        if g.process.startswith("peer-") and not self.certain(g):
            return None
        if g.lost is not None and g.lost < g.until:
            end = g.sampled
        elif g.let is not None:
            end = min(g.let, g.until) if g.let_held else min(g.sampled, g.let) if g.let < g.until else g.until
        elif g.process in self.run.killed:
            end = min(g.until, max(g.sampled, self.run.killed[g.process] - KILL_MARGIN))
        else:
            end = g.until
        for path in g.paths:
            if path in self.run.removals:
                end = min(end, self.run.removals[path])
        return (g.got, end) if end > g.got else None

    def certain(self, g):
        """Whether a peer, which has no lease, had its lock for certain: its session cannot have ended meanwhile."""
        if g.let is None or g.paths == ("-",):  # without its path, nobody can say whether an operator has deleted it
            return False
        if self.server_faults is None:
            self.server_faults = self.run.fault_times(SERVER_FAULTS)
        return not any(begin < g.let and end > g.got - 2 * PEER_SESSION for begin, end in self.server_faults)

    @staticmethod
    def together(a, b):
        """Whether these two may have the lock at the same time."""
        return a.kind == b.kind == "r"

    def owners(self):
        by_lock = collections.defaultdict(list)
        for g in self.run.grants:
            span = self.interval(g)
            if span:
                for lock in g.locks:
                    by_lock[lock].append((*span, g))
        count = 0
        for lock, spans in by_lock.items():
            spans.sort(key=lambda s: s[:2])
            count += len(spans)
            inside = []
            for begin, end, g in spans:
                inside = [s for s in inside if s[1] > begin]
                if g.kind.isdigit():
                    if sum(int(s[2].kind) for s in inside) + int(g.kind) > PERMITS:
                        self.broken(f"{lock}: more than {PERMITS} permits at {begin}: {g} and "
                                    + " and ".join(str(s[2]) for s in inside))
                else:
                    for other in inside:
                        if not self.together(other[2], g):
                            self.broken(f"{lock}: two owners at the same time for "
                                        f"{(min(end, other[1]) - begin) / 1e6:.3f} ms from {begin} on: "
                                        f"{other[2]} and {g}")
                inside.append((begin, end, g))
        self.by_lock = by_lock
        early = sum(1 for g in self.run.grants if g.got and g.lost and g.lost < g.until
                    and not any(p in self.run.removals for p in g.paths))
        lost = sum(1 for g in self.run.grants if g.lost or g.let and not g.let_held)
        self.facts.append(f"{lost} locks were lost while they were held, {early} of them before the lease's end and "
                          "without an operator")
        reserves = sorted(self.reserves())
        if reserves:
            self.facts.append(f"{len(reserves)} times another one got the lock of an owner that could not let go "
                              f"(stopped, cut off, killed), {reserves[0] / SECOND:.2f} s after the end of the lease at "
                              f"the earliest, {reserves[len(reserves) // 2] / SECOND:.2f} s in the median")
        for library in sorted({g.process.split(".")[0] for g in self.run.grants if g.process.startswith("peer-")}):
            theirs = [g for g in self.run.grants if g.process.split(".")[0] == library and g.got]
            self.facts.append(f"{library.removeprefix('peer-')} had {len(theirs)} grants, of which "
                              f"{sum(1 for g in theirs if self.certain(g))} were compared with those of zkasio")
        return "one owner at a time: grants", count

    def told(self):
        """A body is cancelled when its lease ends, before that by its margin, or when its process, which was stopped,
        goes on."""
        count, latest, stopped, as_owner = 0, 0, 0, 0
        for g in self.run.grants:
            if not g.cancelled or not g.until:
                continue
            count += 1
            if g.margin:
                stopped += 1
                as_owner += g.let_held
            due = max([g.until - g.margin, *(t for t in self.run.continued[g.process] if t < g.let)])
            latest = max(latest, g.let - due)
            if g.let - due > BUSY:
                self.broken(f"the body of {g} was cancelled {(g.let - due) / SECOND:.2f} s after "
                            + ("its margin began" if g.margin else "the end of its lease"))
        if count:
            self.facts.append(f"{count} bodies under with_lock() were cancelled by the loss of their lock, "
                              f"{latest / SECOND:.2f} s late at the latest; {stopped} had a stop margin, of which "
                              f"{as_owner} had ended as owners")
        return "loss is told in time: bodies that were cancelled", count

    def operators(self):
        """An owner notices within T/4 that an operator has deleted its node, if nothing else is broken meanwhile."""
        count, latest = 0, 0
        if not self.run.timeout:
            return "an operator's deletion is noticed: owners", 0
        others = self.run.fault_times({kind for _, kind in self.run.faults.values()} - {"node-deleted"})
        limit = self.run.timeout // 4 + BUSY
        for g in self.run.grants:
            removed = min((self.run.removals[p] for p in g.paths if p in self.run.removals), default=None)
            if removed is None or g.process.startswith("peer-") or g.until <= removed:
                continue
            noticed = min(filter(None, (g.lost, g.let)), default=None)
            since = removed - self.run.timeout // 4
            if noticed is None or noticed <= removed or any(b < noticed and e > since for b, e in others):
                continue
            count += 1
            latest = max(latest, noticed - removed)
            if noticed - removed > limit:
                self.broken(f"{g} has believed for {(noticed - removed) / SECOND:.2f} s in a node that was deleted")
        if count:
            self.facts.append(f"{count} owners had an operator delete their node while nothing else was broken; after "
                              f"{latest / SECOND:.2f} s at the latest they had noticed, or let go")
        return "an operator's deletion is noticed: owners", count

    def reserves(self):
        """For owners that had not let go when another one got the lock: how long after the end of their lease."""
        for spans in self.by_lock.values():
            for (_, _, g), (begin, _, after) in zip(spans, spans[1:]):
                kept = g.let is None or g.let > begin
                removed = any(p in self.run.removals for p in g.paths)
                if kept and g.kind == after.kind == "x" and not removed and not g.process.startswith("peer-"):
                    yield begin - g.until

    def tokens(self):
        count = 0
        for lock, spans in self.by_lock.items():
            last = None
            for _, _, g in spans:
                if g.kind != "x" or g.process.startswith("peer-"):
                    continue
                count += 1
                if last and g.token_at(lock) <= last.token_at(lock):
                    self.broken(f"{lock}: the token does not rise: {last}, then {g}")
                last = g
        return "tokens rise: grants to one owner", count

    def commits(self):
        by_record = collections.defaultdict(list)
        outcomes = collections.defaultdict(collections.Counter)
        for o in self.run.operations:
            if o.verb == "commit":
                record = o.grant.locks[0]
                outcomes[record][o.outcome] += 1
                if o.outcome == "yes":
                    by_record[record].append((int(o.result[0]), int(o.result[1]), o.grant))
        for record, done in by_record.items():
            done.sort(key=lambda d: d[0])
            for before, after in zip(done, done[1:]):
                if after[2].token_at(record) < before[2].token_at(record):
                    self.broken(f"{record}: a former owner's commit was applied: {after[2]} after {before[2]}")
                if after[1] <= before[1]:
                    self.broken(f"{record}: two commits are one write: {after[2]} and {before[2]}")
        for record, n in outcomes.items():
            self.between(f"commits under {record}", n, self.run.final.get(("version", f"records/{record}")))
        return "commits only while held", sum(sum(n.values()) for n in outcomes.values())

    def between(self, what, outcomes, final):
        """As many as are certain, at most those of an unknown outcome in addition."""
        if final is None:
            self.broken(f"{what}: nobody has looked at the end")
        elif not outcomes["yes"] <= final <= outcomes["yes"] + outcomes["unknown"]:
            self.broken(f"{what}: {outcomes['yes']} are certain, {outcomes['unknown']} unknown, and there are {final}")

    def progress(self):
        faults = self.run.fault_times()
        starts = [f[0] for f in faults]

        def calm(begin, end):
            """Without faults, in seconds."""
            total = end - begin
            for i in range(max(0, bisect.bisect(starts, begin) - 1), len(faults)):
                if faults[i][0] >= end:
                    break
                total -= max(0, min(end, faults[i][1]) - max(begin, faults[i][0]))
            return total / SECOND

        got = collections.defaultdict(list)
        for g in self.run.grants:
            for lock in g.locks:
                if g.got:
                    got[lock].append(g.got)
        for times in got.values():
            times.sort()
        with_peers = {lock for g in self.run.grants if g.process.startswith("peer-") for lock in g.locks}
        longest, count = 0, 0
        for g in self.run.grants:
            count += 1
            end = g.got or g.ended or self.run.killed.get(g.process)
            if end is None:
                self.broken(f"an acquire has never ended: {g}, wanted at {g.wanted}")
                continue
            longest = max(longest, end - g.wanted)
            if end - g.wanted < STALL * SECOND or g.locks[0].startswith(UNFAIR):
                continue
            for lock in g.locks:
                limit = STALL_WITH_PEERS if lock in with_peers else STALL
                times = got[lock]
                inside = times[bisect.bisect(times, g.wanted):bisect.bisect_left(times, end)]
                steps = [g.wanted, *inside, end]
                for a, b in zip(steps, steps[1:]):
                    if b - a > limit * SECOND and calm(a, b) > limit:
                        self.broken(f"{lock}: nobody got it for {(b - a) / SECOND:.1f} s, of which {calm(a, b):.1f} s "
                                    f"without faults, from {a} on, though {g} waited")
        self.facts.append(f"the longest wait for a lock was {longest / SECOND:.1f} s")
        return "nobody waits for ever: acquires", count

    # --------------------------------------------------------------------------------------------------- structures

    def counter(self):
        adds = [o for o in self.run.operations if o.verb == "add"]
        sums = {k: sum(int(o.arguments[0]) for o in adds if o.outcome == k) for k in ("yes", "unknown")}
        self.between("sum of the counter", sums, self.run.final.get(("counter",)))
        # Each addition has got its own part of the number.
        parts = sorted((int(o.result[0]) - int(o.arguments[0]), int(o.result[0])) for o in adds if o.outcome == "yes")
        for before, after in zip(parts, parts[1:]):
            if after[0] < before[1]:
                self.broken(f"counter: two additions ended with the numbers {before[1]} and {after[1]}, and overlap")
        return "exactly once: additions", len(adds)

    def ids(self):
        ids = [o for o in self.run.operations if o.verb == "id" and o.outcome == "yes"]
        for number, times in collections.Counter(o.result[0] for o in ids).items():
            if times > 1:
                self.broken(f"the id {number} was given {times} times")
        return "unique: ids", len(ids)

    def moves(self):
        moves = [o for o in self.run.operations if o.verb == "move"]
        final = {of[1]: n for of, n in self.run.final.items() if of[0] == "account"}
        if sum(final.values()) != OPENING * len(final) or not final:
            self.broken(f"the accounts have {sum(final.values())} together, and began with {OPENING * len(final)}")
        for account, n in final.items():
            least = most = OPENING
            for o in moves:
                change = int(o.arguments[2]) * ((o.arguments[1] == account) - (o.arguments[0] == account))
                if o.outcome != "no":
                    least += change if o.outcome == "yes" or change < 0 else 0
                    most += change if o.outcome == "yes" or change > 0 else 0
            if not least <= n <= most:
                self.broken(f"account {account}: it has {n}, and not between {least} and {most}")
        return "all or nothing, once: transactions", len(moves)

    def items(self, queue, verb):
        """Puts by item, and (certain, unknown) ends by item."""
        puts = {o.arguments[1]: o.outcome for o in self.run.operations if o.verb == "put" and o.arguments[0] == queue}
        ends = collections.defaultdict(collections.Counter)
        for o in self.run.operations:
            if o.verb == verb and o.arguments[0] == queue:
                item = o.arguments[1] if verb == "finish" else o.result[0] if o.outcome == "yes" else None
                ends[item][o.outcome] += 1
        for item in ends:
            if item is not None and puts.get(item, "no") == "no":
                self.broken(f"{queue}: {item} came out, and was not put")
            if item is not None and ends[item]["yes"] > 1:
                self.broken(f"{queue}: {item} was done {ends[item]['yes']} times")
        if self.run.final.get(("left", queue)) != 0:
            self.broken(f"{queue}: at the end there are {self.run.final.get(('left', queue))} items")
        return puts, ends

    def queue(self):
        puts, ends = self.items("queue", "finish")
        for item, outcome in puts.items():
            if outcome == "yes" and not ends[item]["yes"] and not ends[item]["unknown"]:
                self.broken(f"queue: {item} was put, and never done")
        by_place = collections.defaultdict(collections.Counter)
        for o in self.run.operations:
            if o.verb == "finish":
                by_place[o.process.split(".")[0]][o.outcome] += 1
        for place, outcomes in by_place.items():
            self.between(f"effects of {place}", outcomes, self.run.final.get(("version", f"effects/{place}")))
        return "exactly once: items of a queue, done with an effect", len(puts)

    def takes(self):
        puts, ends = self.items("takes", "take")
        missing = [item for item, outcome in puts.items() if outcome == "yes" and not ends[item]["yes"]]
        if len(missing) > ends[None]["unknown"]:
            self.broken(f"takes: {len(missing)} items are lost, with {ends[None]['unknown']} unknown takes: "
                        + " ".join(missing[:5]))
        self.facts.append(f"{len(missing)} items of take() went with processes that were killed or sessions that ended")
        return "at most once: items that were taken", len(puts)

    # ------------------------------------------------------------------------------------------------------- at end

    def views(self):
        seen = self.run.seen or []
        if not seen or any(s != seen[0] for s in seen):
            self.broken(f"caches and groups differ: {seen}")
        elif seen[0].split()[3:] != [f"w{i}" for i in range(len(seen))]:
            self.broken(f"the group is not complete: {seen[0]}")
        return "caches and groups alike, and as on the servers: views", len(seen)

    def end(self):
        if self.run.finished is None:
            self.broken("the run has not come to its end")
        return "nothing is left on the servers", 1

    # ------------------------------------------------------------------------------------------------------ summary

    def summary(self):
        run = self.run
        hours = (run.last - (run.started or run.first or 0)) / SECOND / 3600
        processes = {g.process for g in run.grants}
        peers = {p for p in processes if p.startswith("peer-")}
        yield (f"{hours:.2f} hours, {len(processes - peers)} processes with {len(run.sessions)} sessions, "
               f"{len(peers)} of other libraries; all together, with the servers, used {run.used} of a core")
        yield ""
        yield f"{'looked at':<56} {'number':>9} {'violations':>11}"
        for what, count, violations in self.table:
            yield f"{what:<56} {count:>9} {violations:>11}"
        yield ""
        outcomes = collections.Counter((o.verb, o.outcome) for o in run.operations)
        yield f"{'operations':<16} {'yes':>9} {'no':>9} {'unknown':>9}"
        grants = collections.Counter("yes" if g.got else "no" if g.ended else "unknown" for g in run.grants)
        for verb, n in [("acquire", grants), *((v, {k: outcomes[v, k] for k in ("yes", "no", "unknown")})
                                               for v in sorted({v for v, _ in outcomes}))]:
            yield f"{verb:<16} {n['yes']:>9} {n['no']:>9} {n['unknown']:>9}"
        yield ""
        yield f"{'faults':<32} {'number':>9}"
        for kind, n in sorted(collections.Counter(kind for _, kind in run.faults.values()).items()):
            yield f"{kind.replace('-', ' '):<32} {n:>9}"
        yield ""
        yield from self.facts
        yield ""
        if self.violations:
            yield f"{len(self.violations)} VIOLATIONS"
            yield from self.violations[:50]
        else:
            yield "no violations"


def main():
    judge = Judge(Run(sys.argv[1]))
    print("\n".join(judge.summary()))
    return 1 if judge.violations else 0


if __name__ == "__main__":
    sys.exit(main())
