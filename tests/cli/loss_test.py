"""zklock run and elect when the lock is lost: taken away, cut off, stopped, killed, expired.

Where somebody else gets the lock, his command looks whether that of the former holder still runs. This is what zklock
is for: it does not.
"""

import os
import signal

import support

TIMEOUT = ["--session-timeout", f"{support.paced_ms(4000)}ms"]


class Loss(support.CliTest):
    def next_holder_sees(self, pid):
        """What somebody who waits for the lock sees of that process once he has it."""
        script = f"cut -d' ' -f3 /proc/{pid}/stat 2> /dev/null || echo gone"
        return self.start("run", "-v", self.path, "--", "sh", "-c", script)

    def check_gone(self, seer):
        self.assertIn(seer.line(), ("gone", "Z", "X"))
        self.assertEqual(seer.end(), 0)


class TakenAway(Loss):
    def test_killed(self):
        p = self.hold()
        self.assertEqual(self.zklock("break", "--yes", self.path)[0], 0)
        support.wait_for_end(p.command)
        self.assertEqual(p.end(), 122)
        self.assertIn("the lock is lost: node deleted", p.output()[1])

    def test_the_whole_group(self):
        p = self.start("run", self.path, "--", "sh", "-c", "sleep 1000 & echo $!; cat")
        background = int(p.line())
        self.zklock("break", "--yes", self.path)
        support.wait_for_end(background)
        self.assertEqual(p.end(), 122)

    def test_term(self):
        p = self.start("run", "--on-loss", "term", self.path, "--", "sh", "-c",
                       "trap 'echo tidying up; exit 0' TERM; echo ready; read line")
        self.assertEqual(p.line(), "ready")
        self.zklock("break", "--yes", self.path)
        self.assertEqual(p.line(), "tidying up")
        self.assertEqual(p.end(), 122)

    def test_term_is_followed_by_kill(self):
        p = self.start("run", "--on-loss", "term", "--grace", "100ms", self.path, "--", "sh", "-c",
                       "trap '' TERM; echo ready; while :; do read line || exit; done")
        self.assertEqual(p.line(), "ready")
        self.zklock("break", "--yes", self.path)
        self.assertEqual(p.end(), 122)

    def test_warn(self):
        p = self.hold("--on-loss", "warn")
        self.zklock("break", "--yes", self.path)
        p.error_line("the lock is lost")
        self.assertTrue(support.is_alive(p.command))
        p.say()
        self.assertEqual(p.end(), 0)

    def test_revoked(self):
        p = self.hold()
        status, out, _ = self.zklock("revoke", self.path)
        self.assertEqual(status, 0)
        self.assertIn("Asked: ", out)
        self.assertEqual(p.end(), 128 + signal.SIGTERM)
        p.output()

    def test_revoked_and_ignored(self):
        p = self.hold("--on-revoke", "ignore")
        self.zklock("revoke", self.path)
        self.assertTrue(self.locks()["holders"][0]["revoke_requested"])
        self.assertTrue(support.is_alive(p.command))
        p.say()
        self.assertEqual(p.end(), 0)

    def test_revoked_and_the_data_kept(self):
        for kind, options in (("mutex", ()), ("shared", ("--shared",)), ("semaphore", ("--semaphore", "2"))):
            path = f"{self.path}/{kind}"
            p = self.hold("--on-revoke", "ignore", *options, path=path)
            before = self.locks(path)["holders"][0]
            self.assertEqual(self.zklock("revoke", "--keep-data", path)[0], 0)
            asked = self.locks(path)["holders"][0]
            self.assertTrue(asked["revoke_requested"], kind)
            self.assertEqual((asked["pid"], asked["data"]), (p.pid, before["data"]), kind)
            p.say()
            self.assertEqual(p.end(), 0)
            second = self.hold(*options, path=path)
            self.assertFalse(self.locks(path)["holders"][0]["revoke_requested"], kind)
            self.zklock("revoke", "--keep-data", path)
            self.assertEqual(second.end(), 128 + signal.SIGTERM, kind)
            second.output()

    def test_data_of_another_program_are_not_overwritten_by_a_request(self):
        self.zklock("create", self.path, "notes")
        p = self.hold("--on-revoke", "ignore")
        status, _, err = self.zklock("revoke", "--keep-data", self.path)
        self.assertEqual(status, 120)
        self.assertIn("data of another program", err)
        self.assertEqual(self.zklock("get", self.path)[1], "notes")
        self.assertFalse(self.locks()["holders"][0]["revoke_requested"])
        self.assertEqual(self.zklock("revoke", self.path)[0], 0)
        self.assertTrue(self.locks()["holders"][0]["revoke_requested"])
        p.say()
        self.assertEqual(p.end(), 0)

    def test_a_leader_is_asked_without_a_write_into_its_node(self):
        p = self.hold("--on-revoke", "ignore", verb="elect")
        before = self.locks()["holders"][0]
        self.assertEqual(self.zklock("revoke", self.path)[0], 0)
        asked = self.locks()["holders"][0]
        self.assertTrue(asked["revoke_requested"])
        self.assertEqual(asked["data"], before["data"])  # Curator's LeaderLatch does not survive a write
        self.assertIn("(was asked to give it back)", self.zklock("locks", self.path)[1])
        p.say()
        self.assertEqual(p.end(), 0)
        second = self.hold(verb="elect")
        self.assertFalse(self.locks()["holders"][0]["revoke_requested"])
        self.zklock("revoke", self.path)
        self.assertEqual(second.end(), 128 + signal.SIGTERM)
        second.output()


class CutOff(Loss):
    def setUp(self):
        super().setUp()
        self.way = support.Cut()
        self.addCleanup(self.way.close)

    def test_killed_before_anybody_else_has_it(self):
        p = self.hold(*TIMEOUT, servers=self.way.servers)
        seer = self.next_holder_sees(p.command)
        seer.error_line("waiting behind 1")
        self.way.cut()
        self.check_gone(seer)
        self.assertEqual(p.end(), 122)

    def test_term_comes_before_the_end_of_the_lease(self):
        # A fifth of the session timeout is what a slow machine has from SIGTERM to SIGKILL.
        long = ["--session-timeout", "15s"]
        p = self.start("run", *long, "--on-loss", "term", self.path, "--", "sh", "-c",
                       "trap 'echo tidying up; exit 4' TERM; echo held by $$; read line",
                       environment={"ZK_HOSTS": self.way.servers})
        command = int(p.line().removeprefix("held by "))
        seer = self.next_holder_sees(command)
        seer.error_line("waiting behind 1")
        self.way.cut()
        self.assertEqual(p.line(), "tidying up")
        self.check_gone(seer)
        self.assertIn(p.end(), (4, 122))  # it may have been quick enough to end while the lock was held

    def test_an_expired_session(self):
        p = self.hold(*TIMEOUT, servers=self.way.servers)
        node = self.locks()["holders"][0]["node"]
        self.way.cut()
        self.eventually(lambda: self.zklock("stat", node)[0] == 1)
        self.assertFalse(support.is_alive(p.command))
        self.way.heal()
        self.assertEqual(p.end(), 122)

    def test_who_waits_queues_again_with_the_next_session(self):
        first = self.hold()
        second = self.start("run", "-v", *TIMEOUT, self.path, "--", "echo", "ours",
                            environment={"ZK_HOSTS": self.way.servers})
        second.error_line("waiting behind 1")
        self.way.cut()
        self.eventually(lambda: not self.locks()["waiters"])
        self.way.heal()
        self.eventually(lambda: self.locks()["waiters"])
        first.say()
        self.assertEqual(second.line(), "ours")
        self.assertEqual(second.end(), 0)

    def test_a_short_cut_does_no_harm(self):
        p = self.hold("--session-timeout", "20s", servers=self.way.servers)
        self.way.cut()
        self.zklock("ls", "/")
        self.way.heal()
        p.say()
        self.assertEqual(p.end(), 0)


class StoppedAndKilled(Loss):
    def test_zklock_is_stopped(self):
        p = self.hold(*TIMEOUT)
        seer = self.next_holder_sees(p.command)
        seer.error_line("waiting behind 1")
        p.signal(signal.SIGSTOP)
        self.check_gone(seer)
        p.signal(signal.SIGCONT)
        self.assertEqual(p.end(), 122)

    def test_the_command_ends_while_zklock_is_stopped(self):
        # Whether that was in time, nobody can know any more when zklock goes on.
        p = self.hold(*TIMEOUT)
        seer = self.next_holder_sees(p.command)
        seer.error_line("waiting behind 1")
        p.signal(signal.SIGSTOP)
        p.say()
        support.wait_for_end(p.command)
        self.check_gone(seer)
        p.signal(signal.SIGCONT)
        self.assertEqual(p.end(), 122)

    def test_zklock_is_killed(self):
        p = self.start("run", self.path, "--", "sh", "-c", "sleep 1000 & echo $!; echo $$; cat")
        pids = [int(p.line()), int(p.line())]
        watchdog = support.watchdog_of(p)
        p.process.kill()
        for pid in pids + [watchdog]:
            support.wait_for_end(pid)
        # The lock itself goes with the session, which nobody has ended.
        self.assertEqual(len(self.locks()["holders"]), 1)

    def test_zklock_is_killed_and_its_watchdog_is_stopped(self):
        p = self.hold()
        watchdog = support.watchdog_of(p)
        os.kill(watchdog, signal.SIGSTOP)
        self.addCleanup(os.kill, watchdog, signal.SIGKILL)
        p.process.kill()
        support.wait_for_end(p.command)

    def test_the_watchdog_is_killed(self):
        p = self.hold()
        os.kill(support.watchdog_of(p), signal.SIGKILL)
        self.assertEqual(p.end(), 125)
        self.assertIn("watchdog", p.output()[1])
        self.assertFalse(support.is_alive(p.command))

    def test_the_command_is_stopped(self):
        p = self.hold()
        os.kill(p.command, signal.SIGSTOP)
        self.zklock("break", "--yes", self.path)
        self.assertEqual(p.end(), 122)
        self.assertFalse(support.is_alive(p.command))

    def test_no_watchdog_is_left(self):
        p = self.hold()
        watchdog = support.watchdog_of(p)
        p.say()
        self.assertEqual(p.end(), 0)
        self.assertFalse(support.is_alive(watchdog))


class Elect(Loss):
    def test_one_at_a_time_and_again(self):
        first = self.start("elect", self.path, "--", "sh", "-c", "echo leads $$; read line")
        term = int(first.line().removeprefix("leads "))
        second = self.start("elect", "-v", self.path, "--", "sh", "-c", "echo leads; read line")
        second.error_line("waiting behind 1")
        self.assertEqual(self.zklock("break", "--yes", self.path)[0], 0)
        self.assertEqual(second.line(), "leads")
        support.wait_for_end(term)
        # The first stands again, and leads when the second has ended.
        self.eventually(lambda: [w["pid"] for w in self.locks()["waiters"]] == [first.pid])
        second.say()
        self.assertEqual(second.end(), 0)
        self.assertNotEqual(int(first.line().removeprefix("leads ")), term)
        first.say()
        self.assertEqual(first.end(), 0)

    def test_ends_with_its_command(self):
        self.assertEqual(self.zklock("elect", self.path, "--", "sh", "-c", "exit 6")[0], 6)
        self.assertEqual(self.zklock("elect", self.path, "--", "/no/such/command")[0], 127)

    def test_requeue(self):
        p = self.start("elect", "--requeue", self.path, "--", "sh", "-c", "echo $ZKLOCK_TOKEN")
        tokens = [int(p.line()) for _ in range(3)]
        self.assertEqual(tokens, sorted(set(tokens)))
        p.signal(signal.SIGTERM)
        p.end()


if __name__ == "__main__":
    support.main()
