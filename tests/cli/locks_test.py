"""zklock locks, break, revoke, doctor, bench."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile

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

    def test_watch_ends_with_its_input(self):
        p = self.start("locks", "--watch", self.path)
        self.assertIn("free", p.line())
        p.process.stdin.close()
        self.assertEqual(p.end(), 0)
        p.process.stdin = None

    def test_watch_ends_when_nobody_reads(self):
        p = self.start("locks", "--watch", self.path)
        self.assertIn("free", p.line())
        p.process.stdout.close()
        self.assertEqual(p.end(), 128 + signal.SIGPIPE)

    def test_watch_goes_on_without_input(self):
        p = support.Process(["locks", "--watch", self.path], stdin=subprocess.DEVNULL)
        self._started.append(p)
        self.assertIn("free", p.line())
        holder = self.hold()
        while "mutex, 1 and 0 waiting" not in p.line():
            pass
        p.signal(signal.SIGINT)
        self.assertEqual(p.end(), -signal.SIGINT)
        self.assertTrue(support.is_alive(holder.command))

    def test_watch_counts_grants(self):
        """All of them, however many there are between two looks."""
        self.zklock("create", self.path)
        p = self.start("locks", "--json", "--watch", self.path)
        self.assertEqual(json.loads(p.line())["grants"], 0)
        for _ in range(5):
            self.assertEqual(self.zklock("run", self.path, "true")[0], 0)
        holder = self.hold()
        waiting = self.start("run", "-v", self.path, "--", "true")
        waiting.error_line("waiting behind 1")
        seen = json.loads(p.line())
        while len(seen["waiters"]) != 1:  # a look that sees a new holder, too, would count the next one as a grant
            seen = json.loads(p.line())
        self.assertEqual(self.zklock("run", "-n", self.path, "true")[0], 121)  # no grant
        last = self.start("run", "-v", self.path, "--", "true")
        last.error_line("waiting behind 2")
        seen = json.loads(p.line())
        while len(seen["waiters"]) != 2 or last.pid not in [w["pid"] for w in seen["waiters"]]:
            seen = json.loads(p.line())
        self.assertEqual(seen["grants"], 6)
        self.assertFalse(seen["holders"][0]["held_at_least"])
        holder.say()
        self.assertEqual((holder.end(), waiting.end(), last.end()), (0, 0, 0))
        while seen["grants"] < 8 or seen["holders"]:
            seen = json.loads(p.line())
        self.assertEqual(seen["grants"], 8)
        self.assertGreater(seen["grants_per_second"], 0)

    def test_watch_counts_grants_of_a_semaphore(self):
        self.hold("--semaphore", "2")
        p = self.start("locks", "--json", "--watch", self.path)
        seen = json.loads(p.line())
        self.assertEqual((seen["grants"], seen["holders"][0]["held_at_least"]), (0, True))
        for _ in range(3):
            self.assertEqual(self.zklock("run", "--semaphore", "2", self.path, "true")[0], 0)
        while seen["grants"] < 3:
            seen = json.loads(p.line())
        self.assertEqual(seen["grants"], 3)

    def test_watch_and_a_holder_that_is_killed(self):
        holder = self.hold("--session-timeout", "4s")
        p = self.start("locks", "--watch", self.path)
        self.assertIn("mutex, 1 and 0 waiting", p.line())
        holder.kill()
        while "free" not in p.line():
            pass

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

    def test_the_holder_is_meant_also_if_another_library_names_no_ids(self):
        # Its node has the first number, and a name that sorts behind those of the contenders that wait.
        for waiter in ((), ("--kazoo",)):
            path = f"{self.path}/{len(waiter)}"
            marker = "/__lock__" if waiter else "/lock-"
            self.zklock("create", "-p", path)
            theirs = path + marker + "0000000000"
            session = support.ephemeral_sequential(path + marker)
            self.addCleanup(session.close)
            p = self.start("run", "-v", *waiter, path, "--", "true")
            p.error_line("waiting behind 1")
            seen = self.locks(path)
            self.assertEqual([h["node"] for h in seen["holders"]], [theirs])
            self.assertEqual([w["pid"] for w in seen["waiters"]], [p.pid])
            status, out, _ = self.zklock("revoke", path)
            self.assertEqual((status, out.count("Asked: ")), (0, 1))
            self.assertIn(theirs.rsplit("/", 1)[1], out)
            seen = self.locks(path)
            self.assertEqual([h["revoke_requested"] for h in seen["holders"]], [True])
            self.assertEqual([w["revoke_requested"] for w in seen["waiters"]], [False])
            status, out, _ = self.zklock("break", "--yes", path)
            self.assertEqual(status, 0)
            self.assertIn(theirs.rsplit("/", 1)[1], out)
            self.assertEqual(p.end(), 0)


class Tree(support.CliTest):
    def test_finds_every_lock(self):
        names = {"/a/mutex": [], "/a/b/rw": ["-s"], "/a/b/c/permits": ["--semaphore", "2"], "/a/kazoo": ["--kazoo"]}
        for name, options in names.items():
            self.hold(*options, path=self.path + name)
        self.hold(path=self.path + "/led", verb="elect")
        self.zklock("create", "-p", self.path + "/a/config/limits", "data")
        status, out, err = self.zklock("locks", "-r", self.path)
        self.assertEqual((status, err), (0, ""))
        found = [line.split()[0] for line in out.splitlines()]
        self.assertEqual(found, sorted(self.path + name for name in [*names, "/led"]))
        self.assertIn("election, 1 and 0 waiting", out)
        self.assertIn(f"pid {self._started[0].pid}", out)
        _, out, _ = self.zklock("locks", "-r", "--json", self.path + "/a/b")
        self.assertEqual([lock["kind"] for lock in json.loads(out)["locks"]], ["semaphore", "read-write lock"])

    def test_locks_within_locks(self):
        self.hold(path=self.path)
        self.hold(path=self.path + "/inner/lock")  # a foreign child, which libraries of others refuse
        _, out, err = self.zklock("locks", "-r", self.path)
        self.assertEqual([line.split()[0] for line in out.splitlines()], [self.path, self.path + "/inner/lock"])
        self.assertIn("1 foreign", out)

    def test_no_lock_at_all(self):
        self.zklock("create", self.path)
        status, out, err = self.zklock("locks", "-r", self.path)
        self.assertEqual((status, out), (0, ""))
        self.assertIn(f"nobody holds a lock at {self.path} or below", err)
        status, out, err = self.zklock("locks", "-r", self.path + "/none")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no such node", err)

    def test_what_may_not_be_read(self):
        mine = {"ZKLOCK_AUTH": "joe:secret"}
        self.addCleanup(self.zklock, "rm", "-r", "--yes", self.path + "/secret", environment=mine)
        self.zklock("create", "-p", self.path + "/secret")
        self.zklock("create", "--acl", "digest:joe:x:cdrwa", self.path + "/secret/closed")
        self.hold(path=self.path + "/open")
        status, out, err = self.zklock("locks", "-r", self.path)
        self.assertEqual((status, len(out.splitlines())), (0, 1))
        self.assertIn(f"{self.path}/secret/closed: not for us to read", err)
        _, out, _ = self.zklock("locks", "-r", "--json", self.path)
        self.assertEqual(json.loads(out)["unreadable"], [self.path + "/secret/closed"])
        status, out, err = self.zklock("locks", "-r", self.path + "/secret/closed")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("--auth-file", err)

    def test_contenders_that_may_not_be_read(self):
        self.zklock("create", "-p", self.path + "/lock")
        holder = self.start("run", "--acl", "creator", self.path + "/lock", "--", "sh", "-c", "echo held; read line",
                            environment={"ZKLOCK_AUTH": "joe:secret"})
        self.assertEqual(holder.line(), "held")
        status, out, err = self.zklock("locks", "-r", self.path)
        self.assertEqual((status, out), (0, ""))
        self.assertIn(f"{self.path}/lock", err)
        status, out, _ = self.zklock("locks", "-r", self.path, environment={"ZKLOCK_AUTH": "joe:secret"})
        self.assertIn("mutex, 1 and 0 waiting", out)

    def test_watch_does_not_take_what_may_not_be_read_for_free(self):
        lock = self.path + "/lock"
        holder = self.hold(path=lock)
        p = self.start("locks", "-r", "--watch", "--json", self.path)
        self.assertEqual(len(json.loads(p.line())["holders"]), 1)
        hidden = self.start("run", "-v", "--acl", "creator", lock, "--", "true",
                            environment={"ZKLOCK_AUTH": "joe:secret"})
        hidden.error_line("waiting behind 1")
        # Two looks later at the latest, the first lock that is found says that the other one was not taken for free.
        other = self.hold(path=self.path + "/other")
        self.assertEqual(json.loads(p.line())["path"], self.path + "/other")
        for process in (holder, other):
            process.say()
            self.assertEqual(process.end(), 0)
        self.assertEqual(hidden.end(), 0)

    def test_names_do_not_reach_the_terminal(self):
        self.hold(path=self.path + "/\u00fc \u5b57")
        _, out, _ = self.zklock("locks", "-r", self.path)
        self.assertIn("/\u00fc \u5b57", out)
        self.hold("--data", "\x1b[31m\n\u009b31m", path=self.path + "/other")
        _, out, _ = self.zklock("locks", "-r", self.path)
        self.assertEqual(len(out.splitlines()), 2)
        self.assertFalse(set(out) & {"\x1b", "\x7f", "\u009b"}, out)

    def test_a_deep_tree_and_a_wide_one(self):
        deep = self.path + "/d" * 400
        self.hold(path=deep)
        with tempfile.TemporaryDirectory() as directory:
            names = os.path.join(directory, "names")
            with open(names, "w") as f:
                f.writelines(f"{self.path}/wide/{i:04}\n" for i in range(300))
            script = f"while read -r n; do printf '%s\\n' \"$n\"; done < {names} | xargs -P 8 -n 1 " \
                     f"{support.PROGRAM} create -p"
            done = subprocess.run(["sh", "-c", script], env={**os.environ, "ZK_HOSTS": support.SERVERS},
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        before = self.requests()
        _, out, err = self.zklock("locks", "-r", self.path)
        requests = self.requests() - before
        self.assertEqual([line.split()[0] for line in out.splitlines()], [deep])
        self.assertEqual(err, "")
        self.assertGreater(requests, 700)
        self.assertLess(requests, 800)  # one for each node; with those of the lock, the session, and its holder's

    def requests(self):
        """How many the first server has received."""
        host, port = support.SERVERS.split(",")[0].rsplit(":", 1)
        with socket.create_connection((host, int(port))) as server, server.makefile() as answer:
            server.sendall(b"srvr")
            return int(re.search(r"Received: (\d+)", answer.read()).group(1))

    def test_the_root_without_what_is_the_servers(self):
        self.hold()
        status, out, _ = self.zklock("locks", "-r", "/")
        self.assertEqual(status, 0)
        self.assertIn(self.path, [line.split()[0] for line in out.splitlines()])
        self.assertNotIn("/zookeeper", out)

    def test_watch(self):
        p = self.start("locks", "-r", "--watch", "--json", "/")
        holder = self.hold(path=self.path + "/comes")
        find = lambda: next(seen for seen in iter(lambda: json.loads(p.line()), None)
                            if seen["path"] == self.path + "/comes")
        seen = find()
        self.assertEqual([h["pid"] for h in seen["holders"]], [holder.pid])
        holder.say()
        self.assertEqual(find()["holders"], [])
        p.process.stdin.close()
        self.assertEqual(p.end(), 0)
        p.process.stdin = None

    def test_without_a_server(self):
        status, out, err = self.zklock("locks", "-r", "--connect", "127.0.0.1:1", "--connect-timeout", "200ms", "/")
        self.assertEqual((status, out), (123, ""))
        self.assertIn("not connected", err)


class Checks(support.CliTest):
    def test_doctor(self):
        self.zklock("create", "--acl", "world:anyone:rd", self.path)
        status, out, err = self.zklock("doctor", self.path)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("round trip", out)
        self.assertIn("standalone" if "," not in support.SERVERS else "leader", out)
        self.assertIn("anybody who reaches the servers may change it", out)  # a warning: anybody may remove children

    def test_doctor_is_content(self):
        self.zklock("create", "--acl", "read-only", self.path)
        status, out, _ = self.zklock("doctor", "--json", self.path)
        found = json.loads(out)
        slow = [f for f in found["findings"] if f["about"] in ("round trip", "leader")]
        others = [f for f in found["findings"] if f not in slow]
        self.assertEqual({f["severity"] for f in others}, {"ok"}, others)
        self.assertEqual(status, 1 if "problem" in {f["severity"] for f in slow} else 0)

    def test_doctor_and_an_old_server(self):
        def older(data):
            return re.sub(rb"(Zookeeper version: )[0-9.]+", rb"\g<1>3.4.13", data)

        server = support.Cut(older)
        self.addCleanup(server.close)
        status, out, _ = self.zklock("doctor", "/", environment={"ZK_HOSTS": server.servers})
        self.assertEqual(status, 1)
        self.assertIn("3.4.13", out)
        self.assertIn("they need ZooKeeper 3.5", out)
        self.assertNotIn("they need", self.zklock("doctor", "/")[1])

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

    def test_cost(self):
        self.zklock("create", "-p", self.path + "/data", "0123456789")
        self.hold(path=self.path + "/lock")
        status, out, err = self.zklock("cost", "--json", self.path)
        self.assertEqual((status, err), (0, ""))
        found = json.loads(out)
        self.assertEqual((found["nodes"], found["ephemerals"], found["sessions"]), (4, 1, 1))
        self.assertGreater(found["data_bytes"], 10)  # and those of the lock's node
        (session,) = found["largest_sessions"]
        node = json.loads(self.zklock("locks", "--json", self.path + "/lock")[1])["holders"][0]
        self.assertEqual(session["session"], node["session"])
        self.assertEqual(session["end_bytes"], 48 + 4 + len(node["node"]))
        self.assertEqual([(d["path"], d["children"]) for d in found["largest_directories"]],
                         [(self.path, 2), (self.path + "/lock", 1)])
        self.assertGreater(found["servers"][0]["nodes"], 4)
        out = self.zklock("cost", self.path)[1]
        self.assertIn(f"4 nodes at {self.path} and below, 1 of them ephemeral", out)
        self.assertRegex(out, r"server .*: \d+ connections, \d+ nodes")
        self.assertRegex(out, r"\n0 problems, 0 warnings\n$")

    def test_cost_of_many_and_of_large_ones(self):
        self.zklock("create", "-p", self.path + "/large", "x" * 120_000)
        self.zklock("create", self.path + "/hidden")
        self.zklock("create", self.path + "/hidden/child")
        self.zklock("acl", self.path + "/hidden", "--set", "world:anyone:cda")
        status, out, _ = self.zklock("cost", "--json", self.path)
        found = json.loads(out)
        self.assertEqual((status, found["warnings"]), (0, 1), found)
        self.assertIn("120 kB", [f["text"] for f in found["findings"] if f["severity"] == "warning"][0])
        self.assertEqual(found["unreadable"], [self.path + "/hidden"])
        self.zklock("acl", self.path + "/hidden", "--set", "open")

    def cost(self, *arguments, servers=None):
        """Exit status, what it has found, and the texts of its warnings and problems."""
        environment = {"ZK_HOSTS": servers} if servers else None
        status, out, err = self.zklock("cost", "--json", self.path, *arguments, environment=environment)
        self.assertEqual(err, "")
        found = json.loads(out)
        return status, found, [f["text"] for f in found["findings"] if f["severity"] in ("warning", "problem")]

    def test_cost_of_a_directory_with_many_children(self):
        self.zklock("create", self.path)
        crowd = support.Crowd()
        self.addCleanup(crowd.close)
        crowd.create([f"{self.path}/{i}" for i in range(10_000)])
        self.assertEqual(self.cost()[2], [])
        crowd.create([f"{self.path}/more"])
        status, found, said = self.cost()
        self.assertEqual((status, found["nodes"], found["warnings"], found["problems"]), (0, 10_002, 1, 0))
        self.assertEqual(len(said), 1)
        self.assertIn(f"{self.path}: 10001 children", said[0])
        self.assertIn("each contender of a lock lists it once", said[0])

    def test_cost_of_a_directory_that_others_cannot_list(self):
        self.zklock("create", self.path)
        crowd = support.Crowd()
        self.addCleanup(crowd.close)
        size = 4 + 240  # of a name in the listing
        enough = (1_048_575 - 4) // size
        crowd.create([f"{self.path}/{i:0240}" for i in range(enough)])
        self.assertEqual(self.cost()[2], [])
        crowd.create([f"{self.path}/{enough:0240}"])
        status, found, said = self.cost()
        self.assertEqual((status, found["warnings"], found["problems"]), (1, 0, 1))
        self.assertEqual(found["largest_directories"][0],
                         {"path": self.path, "children": enough + 1, "list_bytes": 4 + (enough + 1) * size})
        self.assertIn("more than jute.maxbuffer", said[0])

    def test_cost_of_a_session_with_many_nodes(self):
        self.zklock("create", self.path)
        crowd = support.Crowd()
        self.addCleanup(crowd.close)
        size = 4 + len(self.path) + 1 + 240  # of a path in the transaction
        enough = (256 * 1024 - 48) // size
        crowd.create([f"{self.path}/{i:0240}" for i in range(enough)], ephemeral=True)
        self.assertEqual(self.cost()[2], [])
        crowd.create([f"{self.path}/{enough:0240}"], ephemeral=True)
        status, found, said = self.cost()
        self.assertEqual((status, found["warnings"], found["problems"]), (0, 1, 0))
        self.assertEqual(found["largest_sessions"],
                         [{"session": crowd.session, "ephemerals": enough + 1, "end_bytes": 48 + (enough + 1) * size}])
        self.assertIn(f"{crowd.session} has {enough + 1} nodes, its end is a transaction of ", said[0])

    def test_cost_and_the_watches_of_the_servers(self):
        """Of `mntr`; of `wchs`, where `mntr` does not tell; of neither."""
        self.zklock("create", self.path)
        self.start("locks", "--watch", self.path).line()
        for hidden, told in ((b"", True), (b"zk_watch_count", True), (b"_watch_count Total watches", False)):
            def change(data):
                for one in hidden.split(b" ", 1):
                    data = data.replace(one, b"x" * len(one)) if one else data
                return data
            way = support.Cut(change)
            self.addCleanup(way.close)
            status, found, said = self.cost(servers=way.servers)
            self.assertEqual((status, said), (0, []))
            (server,) = found["servers"]
            self.assertEqual("watches" in server, told, hidden)
            if told:
                self.assertGreaterEqual(server["watches"], 1)
            text = [f["text"] for f in found["findings"] if f["about"] == "server"][0]
            self.assertEqual("does not tell its watches" in text, not told, text)

    def test_cost_and_a_server_that_does_not_answer(self):
        self.zklock("create", self.path)
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            absent = "127.0.0.1:%d" % nobody.getsockname()[1]
            status, found, said = self.cost(servers=f"{support.SERVERS},{absent}")
        self.assertEqual((status, found["problems"]), (1, 1))
        self.assertIn(f"{absent} does not answer: ", said[0])

    def test_cost_and_a_path_that_is_not_there(self):
        status, out, err = self.zklock("cost", self.path)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("no such node", err)

    def test_bench(self):
        self.zklock("create", self.path)
        status, out, err = self.zklock("bench", "--json", "--duration", "100ms", "--clients", "2", self.path)
        self.assertEqual((status, err), (0, ""))
        for figures in json.loads(out):
            self.assertGreater(figures["per_second"], 0, figures)
        self.assertEqual(self.zklock("ls", self.path)[1], "")


if __name__ == "__main__":
    support.main()
