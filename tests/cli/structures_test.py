"""zklock's barriers and counters."""

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

    def test_words_that_are_wrong(self):
        for arguments in ((), ("close", "/a"), ("set",), ("set", "a"), ("set", "-w", "3s", "/a")):
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


if __name__ == "__main__":
    support.main()
