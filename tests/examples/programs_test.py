"""What the small examples say, and how they end, when something is not as usual."""

import os
import socket
import subprocess
import sys
import unittest

SERVERS = os.environ.get("ZKASIO_TEST_SERVERS", "")
PATIENCE = 60  # seconds


def program(name):
    return os.environ[f"ZKASIO_{name.upper()}"]


def run(name, *arguments):
    return subprocess.run([program(name), *arguments], capture_output=True, text=True, timeout=PATIENCE)


class Programs(unittest.TestCase):
    def test_the_first_program_ends_with_an_error_where_there_is_no_server(self):
        done = run("start", "127.0.0.1:1", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not connected", done.stderr)

    def test_a_client_without_a_log_says_by_itself_that_a_server_does_not_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing
            address = "%s:%d" % silent.getsockname()
            done = run("start", address, "4")
        self.assertEqual(done.returncode, 1)
        warnings = [line for line in done.stderr.splitlines() if line.startswith("zkasio: warning: cannot connect")]
        self.assertTrue(warnings, done.stderr)
        self.assertIn(address, warnings[0])

    def test_what_is_refused_on_purpose_does_not_look_like_a_failure(self):
        done = run("live_config", SERVERS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^refused, as it should be: .*\nthe limit is 5, as before\n$")


if __name__ == "__main__":
    if not SERVERS:
        print("SKIPPED: no ZKASIO_TEST_SERVERS")
        sys.exit(77)
    unittest.main(verbosity=2)
