"""zklock's barriers, counters and queues."""

import json

import support


class Barriers(support.CliTest):
    def test_a_gate(self):
        gate = self.path + "/deploy/gate"
        self.assertEqual(self.zklock("barrier", "wait", gate)[0], 0)
        self.assertEqual(self.zklock("barrier", "set", gate)[::2], (0, ""))
        self.assertIn("closed already", self.zklock("barrier", "set", gate)[2])
        self.assertEqual(self.zklock("barrier", "wait", "-w", "0s", gate)[0], 121)
        self.assertEqual(self.zklock("barrier", "wait", "--wait", "50ms", gate)[0], 121)
        waiting = support.Process(["barrier", "wait", "--verbose", gate])
        waiting.error_line()
        self.assertEqual(self.zklock("barrier", "remove", gate)[::2], (0, ""))
        self.assertEqual(waiting.end(), 0)
        waiting.kill()
        self.assertIn("was open", self.zklock("barrier", "remove", gate)[2])

    def test_its_acl(self):
        gate = self.path + "/gate"
        self.zklock("create", self.path)
        self.assertEqual(self.zklock("barrier", "set", "--acl", "read-only", gate)[::2], (0, ""))
        self.assertEqual(self.zklock("acl", gate)[1], "world:anyone:r\n")

    def test_words_that_are_wrong(self):
        for arguments in ((), ("close", "/a"), ("set",), ("set", "a"), ("set", "-w", "3s", "/a"),
                          ("set", "--acl", "nobody", "/a"), ("remove", "--acl", "open", "/a")):
            status, _, err = self.zklock("barrier", *arguments)
            self.assertEqual(status, 120, arguments)
            self.assertIn("zklock barrier", err)


class Counters(support.CliTest):
    def test_numbers(self):
        number = self.path + "/number"
        self.assertEqual(self.zklock("counter", "get", number), (0, "0\n", ""))
        self.assertEqual(self.zklock("counter", "add", number, "40")[1], "40\n")
        self.assertEqual(self.zklock("counter", "add", number, "-50")[1], "-10\n")
        self.assertEqual(self.zklock("counter", "get", number)[1], "-10\n")
        self.assertEqual(self.zklock("ls", number)[1], "")  # no receipt stays
        text = self.path + "/text"
        self.assertEqual(self.zklock("counter", "add", "--kazoo", text, "7")[1], "7\n")
        self.assertEqual(self.zklock("get", text)[1], "7")

    def test_what_is_no_number(self):
        number = self.path + "/number"
        self.assertEqual(self.zklock("counter", "add", number, "many")[0], 120)
        self.assertEqual(self.zklock("counter", "add", number)[0], 120)
        self.zklock("create", "-p", number, "text")
        status, _, err = self.zklock("counter", "add", number, "1")
        self.assertNotEqual(status, 0)
        self.assertIn(number, err)
        self.assertEqual(self.zklock("get", number)[1], "text")


class Queues(support.CliTest):
    def test_items(self):
        jobs = self.path + "/jobs"
        self.assertEqual(self.zklock("queue", "put", jobs, "one")[::2], (0, ""))
        self.assertEqual(self.zklock("queue", "put", "--priority", "5", "-f", "-", jobs, text="first")[0], 0)
        self.assertEqual(self.zklock("queue", "put", "--delay", "1h", jobs, "much later")[0], 0)
        self.assertRegex(self.zklock("queue", "ls", jobs)[1],
                         r" 2 waiting \(the oldest for [^)]+\), 0 claimed, 1 later, 0 dead\n")
        state = json.loads(self.zklock("queue", "ls", "--json", jobs)[1])
        self.assertTrue(0 <= state["oldest_ms"] < 60_000)
        self.assertEqual((state["waiting"], state["later"]), (2, 1))
        names = self.zklock("ls", jobs + "/entries")[1].split()
        self.assertEqual(sorted(names)[0][:10], "entry-005-")

    def test_layouts(self):
        for number, (layout, options, name) in enumerate((
                ("kazoo", ("--priority", "7"), "entry-007-"), ("curator", ("--lock-path", self.path + "/locks"), "queue-"),
                ("curator-priority", ("--priority", "-1"), "queue-0FFFFFFFF"), ("curator-delay", (), "queue-|"),
                ("curator-id", ("--id", "a/b"), "queue-|a_b|"), ("curator-simple", (), "qn-"))):
            jobs = f"{self.path}/jobs{number}"
            self.assertEqual(self.zklock("queue", "put", "--layout", layout, *options, jobs, "one")[::2], (0, ""))
            self.assertEqual(self.zklock("ls", jobs)[1][:len(name)], name)
            self.assertIn("1 waiting", self.zklock("queue", "ls", "--layout", layout, jobs)[1])

    def test_dead_items(self):
        jobs = self.path + "/jobs"
        self.zklock("queue", "put", jobs, "works")
        self.assertEqual(self.zklock("queue", "dead", jobs), (0, "", ""))
        self.assertEqual(json.loads(self.zklock("queue", "dead", "--json", jobs)[1]), [])
        self.assertNotIn("oldest_ms", json.loads(self.zklock("queue", "ls", "--json", self.path + "/none")[1]))
        self.assertEqual(self.zklock("queue", "revive", "--all", jobs)[0], 0)
        status, _, err = self.zklock("queue", "revive", jobs, "entry-100-0000000009.1a")
        self.assertEqual(status, 1)
        self.assertIn("there is no dead item", err)
        for name in ("entry-100-0000000009", "entry-100-0000000009.1a/reason"):
            status, _, err = self.zklock("queue", "revive", jobs, name)
            self.assertEqual(status, 120)
            self.assertIn("no dead item's name", err)

    def test_words_that_are_wrong(self):
        for arguments in ((), ("drop", "/a"), ("put", "/a"), ("put", "--priority", "1000", "/a", "x"),
                          ("revive", "/a"), ("ls",)):
            self.assertEqual(self.zklock("queue", *arguments)[0], 120, arguments)


if __name__ == "__main__":
    support.main()
