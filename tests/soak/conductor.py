"""Runs a soak: servers, processes that use the library, faults. Leaves histories in a directory, for check.py."""

import argparse
import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time

import faults
import peers
from servers import Ensemble, ask

LOCKS = ("mutex-0", "mutex-1", "margin", "shared", "cohort", "multi-0", "multi-1", "multi-2", "election",
         "semaphore/leases")


class Ended(Exception):
    """A process has ended by itself."""


class Process:
    """A worker: commands into its standard input, answers from its standard output."""

    def __init__(self, soak, name, kind, seed):
        self.name, self.kind = name, kind
        self.file = os.path.join(soak.directory, "history", f"{name}.txt")
        self.errors = open(os.path.join(soak.directory, f"{name}.stderr"), "wb")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", soak.worker, soak.ensemble.connect_string, name, self.file, str(seed),
             str(soak.options.rate), str(soak.options.timeout), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line.rstrip("\n"))
        self.answers.put(None)

    def send(self, command):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()

    def answer(self, limit):
        try:
            line = self.answers.get(timeout=limit)
        except queue.Empty:
            return None
        if line is None:
            raise Ended(f"{self.name} has ended with {self.process.wait()}")
        return line

    def ask(self, command, limit):
        """The answer; None if there is none in time."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.answers.get_nowait()  # of a question that was given up
        self.send(command)
        return self.answer(limit)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()


class Soak:
    """One run."""

    def __init__(self, options):
        self.options = options
        self.directory = options.directory
        self.worker = options.worker
        self.timeout = options.timeout / 1000
        os.makedirs(os.path.join(self.directory, "history"))
        self.notes = open(os.path.join(self.directory, "history", "conductor.txt"), "a", buffering=1)
        self.noting = threading.Lock()
        self.began = time.monotonic()
        self.restarts = 0
        self.workers, self.operator, self.peers = [], None, []
        # Small log files: a full disk is noticed soon.
        environment = {"TICK": "500", "MAX_SESSION_TIMEOUT": "60000",
                       "JAVA_TOOL_OPTIONS": "-Dzookeeper.preAllocSize=64 -Dzookeeper.snapCount=20000"}
        self.ensemble = Ensemble(self.directory, options.server_script, options.ports.split(), options.own_network,
                                 environment)

    def note(self, *words):
        line = f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME)} " + " ".join(str(w) for w in words) + "\n"
        with self.noting:
            self.notes.write(line)

    def say(self, text):
        print(f"[{(time.monotonic() - self.began) / 60:7.2f} min] {text}", flush=True)

    def bad(self, text):
        self.note("bad", 0, text)
        self.say(f"VIOLATION: {text}")

    # ---------------------------------------------------------------------------------------------------- processes

    def new_worker(self, place):
        self.restarts += 1
        # Every other one has a network that can be cut.
        process = Process(self, f"w{place}.{self.restarts}", "direct" if place % 2 else "proxied",
                          self.options.seed * 1000 + self.restarts)
        self.note("begun", 0, process.name)
        process.send("work")
        return process

    def run(self):
        self.ensemble.await_all()
        self.operator = Process(self, "operator", "operator", self.options.seed)
        if self.operator.ask("prepare", 60) != "prepared":
            raise RuntimeError("the directories are not there")
        self.workers = [self.new_worker(i) for i in range(self.options.workers)]
        for library in peers.SHARED if self.options.peers else ():
            peer = peers.Peer(library, os.path.join(self.options.peers, library), self.ensemble.connect_string,
                              self.directory, self.note, self.options.seed)
            peer.start()
            self.peers.append(peer)
        self.note("running", 0, self.timeout)
        self.say(f"running, seed {self.options.seed}, servers {self.ensemble.connect_string}")
        end = time.monotonic() + self.options.hours * 3600
        without = set()
        if not self.options.own_network:
            without |= set(faults.NEED_NETWORK)
        if self.options.only:
            without |= set(faults.KINDS) - set(self.options.only)
        sequence = faults.sequence(self.options.seed, self.timeout, without)
        time.sleep(min(5, self.options.hours * 3600 / 10))
        number = 0
        while time.monotonic() < end:
            number += 1
            fault = next(sequence)
            healings = [self.begin(number, fault)]
            if fault.overlaps:
                time.sleep(fault.seconds / 2)
                number += 1
                other = next(sequence)
                healings.append(self.begin(number, other))
                time.sleep(other.seconds)
            else:
                time.sleep(fault.seconds)
            for heal in healings:
                heal()
            restarted = self.ensemble.await_all()
            self.note("healed", number)
            if restarted:
                self.say(f"server {restarted} had ended, and was started again")
            self.look_after_workers()
            time.sleep(min(self.options.gap * fault.gap, max(0, end - time.monotonic())))
        self.finish()

    def look_after_workers(self):
        for i, w in enumerate(self.workers):
            if w.process.poll() is not None:
                self.bad(f"{w.name} has ended by itself with {w.process.returncode}, see {w.name}.stderr")
                self.workers[i] = self.new_worker(i)

    # ------------------------------------------------------------------------------------------------------- faults

    def begin(self, number, fault):
        """Returns the function that ends the fault."""
        heal = getattr(self, fault.kind.replace(" ", "_"))(number, fault)

        def end():
            if heal:
                heal()
            self.note("over", number)

        return end

    def announce(self, number, fault, whom, more=""):
        self.note("fault", number, fault.kind.replace(" ", "-"), whom)
        self.say(f"fault {number}: {fault.kind}: {whom}{more}, {fault.seconds:.1f} s")

    def server(self, fault):
        leader = self.ensemble.leader() if fault.which < 0 else None
        server = leader or self.ensemble.servers[fault.which % 3]
        return server, f"server {server.number}" + (", the leader" if leader else "")

    def server_killed(self, number, fault):
        server, whom = self.server(fault)
        self.announce(number, fault, whom)
        server.kill()
        return lambda: self.ensemble.start(server) if server.process.poll() is not None else None

    def server_stopped(self, number, fault):
        server, whom = self.server(fault)
        self.announce(number, fault, whom)
        server.signal(signal.SIGSTOP)
        return lambda: server.signal(signal.SIGCONT)

    def all_servers_killed(self, number, fault):
        self.announce(number, fault, "all servers")
        for server in self.ensemble.servers:
            server.kill()

        def heal():
            for server in self.ensemble.servers:
                if server.process.poll() is not None:
                    self.ensemble.start(server)

        return heal

    def server_cut_off_from_peers(self, number, fault):
        server, whom = self.server(fault)
        direction = ("both", "incoming", "outgoing")[int(fault.how * 3)]
        if server.cut:
            return None
        self.announce(number, fault, whom, f", {direction}")
        self.ensemble.part(server, direction)
        return lambda: self.ensemble.heal(server)

    def server_cut_off_from_clients(self, number, fault):
        server, whom = self.server(fault)
        self.announce(number, fault, whom)
        server.reach_clients(False)
        return lambda: server.reach_clients(True)

    def disk_full(self, number, fault):
        server, whom = self.server(fault)
        self.announce(number, fault, whom)
        server.fill_disk()
        return server.free_disk

    def proxied(self, fault):
        places = [w for w in self.workers if w.kind == "proxied"]
        return places[fault.which % len(places)]

    def connections_cut(self, number, fault):
        worker = self.proxied(fault)
        self.announce(number, fault, worker.name)
        worker.send("cut")
        if fault.how < 0.5:
            return lambda: worker.send("cut")
        worker.send("refuse on")
        return lambda: worker.send("refuse off")

    def network_silent(self, number, fault):
        worker = self.proxied(fault)
        self.announce(number, fault, worker.name)
        worker.send("silence on")
        return lambda: worker.send("silence off")

    def network_slow(self, number, fault):
        worker = self.proxied(fault)
        milliseconds = int(20 + fault.how * 480)
        self.announce(number, fault, worker.name, f", {milliseconds} ms each way")
        worker.send(f"delay {milliseconds}")
        return lambda: worker.send("delay 0")

    def process_killed(self, number, fault):
        place = fault.which % len(self.workers)
        worker = self.workers[place]
        self.announce(number, fault, worker.name)
        self.note("kill", number, worker.name)  # before: until then it is certain to live
        worker.kill()

        def heal():
            if self.workers[place] is worker:  # not replaced by a fault that overlaps with this one
                self.workers[place] = self.new_worker(place)

        if fault.how < 0.3:
            heal()
            return None
        return heal

    def process_stopped(self, number, fault):
        worker = self.workers[fault.which % len(self.workers)]
        self.announce(number, fault, worker.name)
        self.note("stop", number, worker.name)
        worker.process.send_signal(signal.SIGSTOP)

        def heal():
            worker.process.send_signal(signal.SIGCONT)
            self.note("continue", number, worker.name)

        return heal

    def node_deleted(self, number, fault):
        lock = LOCKS[int(fault.how * len(LOCKS))]
        fault.seconds = min(fault.seconds, 1)
        self.announce(number, fault, lock)
        answer = self.operator.ask(f"remove {lock}", 3 * self.timeout)
        self.say(f"   operator: {answer}")

    # ---------------------------------------------------------------------------------------------------------- end

    def of_all(self, command, limit, expected=None):
        """Sends a command to all workers. Their answers; None for a worker that does not answer in time."""
        for worker in self.workers:
            with contextlib.suppress(queue.Empty):
                while True:
                    worker.answers.get_nowait()  # "works"
            worker.send(command)
        answers = []
        end = time.monotonic() + limit
        for worker in self.workers:
            try:
                answer = worker.answer(max(0.1, end - time.monotonic()))
            except Ended as e:
                answer = str(e)
            if answer is None or (expected and answer != expected):
                self.bad(f"{worker.name}: {command}: {answer or 'no answer'} within {limit} s")
            answers.append(answer)
        return answers

    def finish(self):
        self.say("the last fault is over")
        time.sleep(1)
        self.note("stopping", 0)
        for peer in self.peers:
            peer.ending.set()
        for peer in self.peers:
            peer.end()
            self.say(f"{peer.library} has had {peer.turns} turns, in {peer.starts} processes")
            if peer.turns == 0 and peer.starts > 10:
                self.bad(f"{peer.library} cannot be started: see peer-{peer.library}.1.stderr")
        patience = 60 + 10 * self.timeout
        self.of_all("stop", patience, "stopped")
        self.of_all("drain", patience, "drained")
        seen = self.of_all("look", patience)
        self.note("seen", 0, json.dumps(seen))
        self.of_all("close", patience, "closed")
        if self.operator.ask("report", patience) != "reported":
            self.bad("no report")
        if self.operator.ask("close", patience) != "closed":
            self.bad("the operator's session does not close")
        self.what_is_left()
        self.note("finished", 0)

    def what_is_left(self):
        """Sessions of killed processes end with their timeout."""
        end = time.monotonic() + 5 * self.timeout
        while True:
            dump = "\n".join(ask(s.address, "dump", 5) for s in self.ensemble.servers if s.mode() == "leader")
            watches = [ask(s.address, "wchs", 5).splitlines() for s in self.ensemble.servers]
            left = [line for line in dump.splitlines() if "/soak" in line or line.startswith("\t0x")]
            watched = [w[-1] for w in watches if w and not w[-1].endswith("Total watches:0")
                       and not w[-1].endswith(":0")]
            served = dump and all(watches)
            if served and not left and not watched:
                break
            if time.monotonic() > end:
                self.bad(f"left on the servers: {' '.join(left + watched) or 'no answer'}")
                break
            time.sleep(0.5)
        self.note("left", 0, len(left), len(watched))

    def end(self):
        for process in [*self.workers, self.operator]:
            if process:
                process.kill()
        for peer in self.peers:
            peer.ending.set()
            if peer.process:
                peer.process.kill()
        self.ensemble.end()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.note("used", 0, f"{(used.ru_utime + used.ru_stime) / (time.monotonic() - self.began):.2f}")
        self.notes.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--server-script", required=True)
    parser.add_argument("--hours", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--timeout", type=int, default=6000)
    parser.add_argument("--gap", type=float, default=10, help="mean seconds from the end of a fault to the next one")
    parser.add_argument("--ports", default="", help="nine, free on 127.0.0.1 to .3, without --own-network")
    parser.add_argument("--own-network", action="store_true")
    parser.add_argument("--peers", help="the directory of the other libraries' programs")
    parser.add_argument("--only", action="append", help="this kind of fault (more than once: these)")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    soak = Soak(options)
    try:
        soak.run()
    finally:
        soak.end()


if __name__ == "__main__":
    main()
