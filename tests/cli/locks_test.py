"""zklock locks, break, revoke, doctor, bench."""

import json
import signal

import support


class Locks(support.CliTest):
    def test_holders_and_waiters(self):
        first = self.hold()
        second = self.start("run", "-v", self.path, "--", "true")
        second.error_line("waiting behind 1")
        seen = self.locks()
        self.assertEqual(seen["kind"], "mutex")
        self.assertEqual([h["pid"] for h in seen["holders"]], [first.pid])
        self.assertEqual([w["pid"] for w in seen["waiters"]], [second.pid])
        self.assertLess(seen["holders"][0]["age_ms"], 3_600_000)
        _, out, _ = self.zklock("locks", self.path)
        self.assertIn(f"mutex, 1 and 1 waiting", out)
        self.assertIn(f"pid {first.pid}", out)

    def test_kinds(self):
        for options, kind in ((["--shared"], "read-write lock"), (["--semaphore", "3"], "semaphore"),
                              (["--kazoo"], "mutex")):
            path = self.path + kind.replace(" ", "")
            self.addCleanup(self.zklock, "rm", "-r", "--yes", path)
            p = self.hold(*options, path=path)
            self.assertEqual(self.locks(path)["kind"], kind)
            p.say()
            self.assertEqual(p.end(), 0)
        p = self.hold(verb="elect")
        self.assertEqual(self.locks()["kind"], "election")
        self.assertIn("leads", self.zklock("locks", self.path)[1])

    def test_a_semaphore_has_no_more_holders_than_permits(self):
        # Who is next creates a lease, and waits then.
        first = self.hold("--semaphore", "2")
        second = self.hold("--semaphore", "2")
        third = self.start("run", "--semaphore", "2", self.path, "--", "true")
        fourth = self.start("run", "--semaphore", "2", self.path, "--", "true")
        leases = lambda: len(self.zklock("ls", self.path + "/leases")[1].splitlines())
        places = lambda: len(self.zklock("ls", self.path + "/locks")[1].splitlines())
        self.eventually(lambda: (leases(), places()) == (3, 2))
        seen = self.locks()
        self.assertEqual([h["pid"] for h in seen["holders"]], [first.pid, second.pid])
        self.assertEqual({w["pid"] for w in seen["waiters"]}, {third.pid, fourth.pid})
        self.assertIn("semaphore, 2 and 2 waiting", self.zklock("locks", self.path)[1])
        self.assertIn("2 of 4 hold it", self.zklock("doctor", self.path)[1])
        for holder in (first, second):
            holder.say()
            self.assertEqual(holder.end(), 0)
        self.assertEqual((third.end(), fourth.end()), (0, 0))
        self.assertEqual(self.locks()["holders"], [])

    def test_what_others_write(self):
        self.hold("--data", "10.0.0.7 \x1b[31mred")
        _, out, _ = self.zklock("locks", self.path)
        self.assertIn("10.0.0.7 \\x1b[31mred", out)
        self.assertNotIn("\x1b", out)

    def test_what_others_write_and_a_terminal_obeys(self):
        # Beyond ASCII: DEL; U+009B, which is ESC [; that as a single byte.
        self.addCleanup(self.zklock, "rm", self.path + "-data")
        self.zklock("create", self.path + "-data")
        p = support.Process(["set", "-f", "-", self.path + "-data"])
        p.process.communicate(b"a\x7f\xc2\x9b31m")
        self.hold("--data", "b\x7f\u009b31m")
        for command in (["locks"], ["locks", "--json"], ["doctor", "--stuck", "0s"], ["doctor", "--json"]):
            _, out, _ = self.zklock(*command, self.path)
            self.assertFalse(set(out) & {"\x1b", "\x7f", "\u009b"}, out)
        self.assertEqual(self.locks()["holders"][0]["data"], "b\x7f\u009b31m")
        _, out, _ = self.zklock("get", "--json", self.path + "-data")
        self.assertEqual(json.loads(out)["data"], "a\x7f\u009b31m")
        self.assertFalse(set(out) & {"\x7f", "\u009b"}, out)

    def test_foreign_and_orphaned_nodes(self):
        self.hold()
        self.zklock("create", self.path + "/notes")
        self.zklock("create", "--mode", "sequential", self.path + "/x-lock-")
        seen = self.locks()
        self.assertEqual(seen["foreign"], ["notes"])
        self.assertEqual([w["session"] for w in seen["waiters"]], ["0x0"])
        status, out, _ = self.zklock("doctor", "--json", self.path)
        self.assertEqual(status, 1)
        found = json.loads(out)["findings"]
        self.assertIn("foreign", [f["about"] for f in found])
        self.assertIn("orphan", [f["about"] for f in found])

    def test_watch(self):
        p = self.start("locks", "--json", "--watch", self.path)
        self.assertEqual(json.loads(p.line())["kind"], "free")
        holder = self.hold()
        while not json.loads(p.line())["holders"]:
            pass
        holder.say()
        while json.loads(p.line())["holders"]:
            pass
        p.signal(signal.SIGTERM)
        self.assertEqual(p.end(), -signal.SIGTERM)

    def test_break_asks(self):
        p = self.hold()
        status, _, err = self.zklock("break", self.path)
        self.assertEqual(status, 120)
        self.assertIn("--yes", err)
        self.assertTrue(support.is_alive(p.command))

    def test_break_a_named_one(self):
        first = self.hold("--shared")
        second = self.hold("--shared")
        self.assertEqual(self.zklock("break", "--yes", self.path)[0], 120)  # which of them?
        node = next(h["node"] for h in self.locks()["holders"] if h["pid"] == second.pid)
        self.assertEqual(self.zklock("break", "--yes", "--node", node.rsplit("/", 1)[1], self.path)[0], 0)
        self.assertEqual(second.end(), 122)
        first.say()
        self.assertEqual(first.end(), 0)
        self.assertEqual(self.zklock("break", "--yes", "--node", "none", self.path)[0], 1)

    def test_break_one_who_waits(self):
        self.hold()
        second = self.start("run", "-v", self.path, "--", "true")
        second.error_line("waiting behind 1")
        node = self.locks()["waiters"][0]["node"]
        self.assertEqual(self.zklock("break", "--yes", "--node", node, self.path)[0], 0)
        self.eventually(lambda: [w["node"] for w in self.locks()["waiters"]] not in ([], [node]))  # queues again
        self.assertIsNone(second.process.poll())


class Checks(support.CliTest):
    def test_doctor(self):
        self.zklock("create", "--acl", "world:anyone:rd", self.path)
        status, out, err = self.zklock("doctor", self.path)
        self.assertEqual((status, err), (1, ""))  # anybody may remove children
        self.assertIn("round trip", out)
        self.assertIn("standalone" if "," not in support.SERVERS else "leader", out)
        self.assertIn("anybody who reaches the servers may change it", out)

    def test_doctor_is_content(self):
        self.zklock("create", "--acl", "read-only", self.path)
        status, out, _ = self.zklock("doctor", "--json", self.path)
        found = json.loads(out)
        slow = [f for f in found["findings"] if f["about"] in ("round trip", "leader")]
        others = [f for f in found["findings"] if f not in slow]
        self.assertEqual({f["severity"] for f in others}, {"ok"}, others)
        self.assertEqual(status, 0 if {f["severity"] for f in slow} == {"ok"} else 1)

    def test_doctor_and_one_who_does_not_move(self):
        self.hold()
        _, out, _ = self.zklock("doctor", "--stuck", "0s", self.path)
        self.assertIn("stuck", out)
        self.assertNotIn("stuck", self.zklock("doctor", self.path)[1])

    def test_doctor_and_a_path_that_is_not_there(self):
        status, out, _ = self.zklock("doctor", self.path)
        self.assertEqual(status, 1)
        self.assertIn(f"{self.path}: there is no such node", out)
        self.assertRegex(out, r"\n1 problem, ")

    def test_bench(self):
        self.zklock("create", self.path)
        status, out, err = self.zklock("bench", "--json", "--duration", "100ms", "--clients", "2", self.path)
        self.assertEqual((status, err), (0, ""))
        for figures in json.loads(out):
            self.assertGreater(figures["per_second"], 0, figures)
        self.assertEqual(self.zklock("ls", self.path)[1], "")


if __name__ == "__main__":
    support.main()
