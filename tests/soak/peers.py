"""Other libraries that share some of the locks: the programs of tests/interop/peers."""

import os
import queue
import random
import subprocess
import threading
import time

# library: (kind, lock, argument) that it shares, and what it is called in tests/interop/peers/README.md.
SHARED = {
    "curator": (("mutex", "mutex-0", ""), ("mutex", "cohort", ""), ("semaphore", "semaphore", "3"),
                ("latch", "election", "")),
    "kazoo": (("curator-names", "mutex-0", ""), ("curator-names", "cohort", "")),
    "gozk": (("lock", "mutex-0", ""), ("lock", "cohort", "")),
}
SESSION = 10  # seconds
PATIENCE = 45  # seconds for a lock; then the peer is started again


class Peer(threading.Thread):
    """One library, which takes turns until end(). What goes wrong in it is its own affair: it is started again."""

    def __init__(self, library, program, servers, directory, note, seed):
        super().__init__(daemon=True)
        self.library, self.program, self.servers, self.directory, self.note = library, program, servers, directory, note
        self.random = random.Random(f"{seed} {library}")
        self.ending = threading.Event()
        self.starts = self.turns = 0
        self.process = None

    def run(self):
        while not self.ending.is_set():
            self.starts += 1
            name = f"peer-{self.library}.{self.starts}"
            with open(os.path.join(self.directory, f"{name}.stderr"), "wb") as errors, \
                    open(os.path.join(self.directory, "history", f"{name}.txt"), "a", buffering=1) as history:
                self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.program, self.servers],
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
                self.answers = queue.Queue()
                reader = threading.Thread(target=self._read, args=(self.process, self.answers), daemon=True)
                reader.start()
                try:
                    self._take_turns(history)
                except (OSError, RuntimeError, subprocess.TimeoutExpired) as e:
                    self.note("restarted", 0, name, str(e).replace("\n", " "))
                self.note("kill", 0, name)
                self.process.kill()
                self.process.wait()
                reader.join()
            self.ending.wait(2)

    @staticmethod
    def _read(process, answers):
        for line in process.stdout:
            answers.put(line.rstrip("\n"))
        answers.put(None)

    def _ask(self, command, expected):
        if command:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        try:
            answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise RuntimeError(f"{command}: no answer") from None
        if answer is None or not answer.startswith(expected):
            raise RuntimeError(f"{command}: {answer}")
        return answer

    def _take_turns(self, history):
        def write(text, when=None):
            history.write(f"{when or now()} {text}\n")

        def now():
            return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

        self._ask("", "ready")
        number = 0
        while not self.ending.wait(self.random.expovariate(1)):
            number += 1
            kind, lock, argument = self.random.choice(SHARED[self.library])
            write(f"want {number} {lock} {'1' if kind == 'semaphore' else 'x'}")
            node = self._ask(f"a acquire {kind} /soak/{lock} {argument}".rstrip(), "a acquired").split()[-1]
            got = now()
            write(f"got {number} 0 0 {got + SESSION * 1_000_000_000} {node}", got)
            self.turns += 1
            time.sleep(min(1, self.random.expovariate(20)))
            write(f"let {number} held")
            self._ask("a release", "a released")
            write(f"free {number}")
        self.process.stdin.write("exit\n")
        self.process.stdin.flush()
        self.process.wait(timeout=20)

    def end(self):
        self.ending.set()
        self.join(timeout=PATIENCE + 25)
