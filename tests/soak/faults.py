"""The faults of a soak, in a sequence that a seed repeats."""

import random

# kind: how often, of all
KINDS = {
    "server killed": 10,
    "server stopped": 12,
    "all servers killed": 3,
    "server cut off from peers": 12,
    "server cut off from clients": 6,
    "disk full": 4,
    "connections cut": 10,
    "network silent": 8,
    "network slow": 4,
    "process killed": 10,
    "process stopped": 12,
    "node deleted": 14,
}

# Left out where the servers have no networks and disks of their own.
NEED_NETWORK = ("server cut off from peers", "server cut off from clients", "disk full")


class Fault:
    """One fault: what, whom, for how long. `which` is a number of a server or process, or -1: the present leader."""

    def __init__(self, draw, kinds, timeout):
        self.kind = draw.choices(list(kinds), list(kinds.values()))[0]
        # Shorter than a session or longer, as often; the leader as often as it would be by chance, and a third more.
        short, long_ = draw.uniform(0.1, 0.6) * timeout, draw.uniform(1.2, 2.5) * timeout
        self.seconds = short if draw.random() < 0.5 else long_
        self.which = -1 if draw.random() < 0.33 else draw.randrange(1_000_000)
        self.how = draw.random()
        self.gap = draw.uniform(0.3, 1.7)  # after it, times the mean gap
        self.overlaps = draw.random() < 0.15  # the next one begins before this one ends


def sequence(seed, timeout, without=()):
    """Yields faults without end."""
    draw = random.Random(seed)
    kinds = {kind: weight for kind, weight in KINDS.items() if kind not in without}
    while True:
        yield Fault(draw, kinds, timeout)
