"""How slow this machine is, for tests in Python: the rule of pace.hpp."""

import os


def pace():
    given = float(os.environ.get("ZKASIO_TEST_PACE") or 1)
    return max(given, min(3.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))))


def paced_ms(on_an_idle_machine):
    """A time that a slow machine may use up, in milliseconds, stretched to this one."""
    return round(on_an_idle_machine * pace())
