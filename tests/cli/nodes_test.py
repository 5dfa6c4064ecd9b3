"""zklock's everyday inspection: get, set, create, rm, ls, stat, acl, watch, tree, whoami."""

import json
import os
import signal
import subprocess

import support


class Nodes(support.CliTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.zklock("create", self.path, "data")[1], self.path + "\n")

    def test_get_is_byte_by_byte(self):
        p = support.Process(["set", "-f", "-", self.path])
        data = bytes(range(256))
        p.process.communicate(data)
        self.assertEqual(p.process.returncode, 0)
        p = support.Process(["get", self.path])
        self.assertEqual(p.process.communicate()[0], data)
        _, out, _ = self.zklock("get", "--json", self.path)
        self.assertTrue(json.loads(out)["data"]["base64"].startswith("AAECAwQF"))

    def test_get_json(self):
        _, out, _ = self.zklock("get", "--json", self.path)
        node = json.loads(out)
        self.assertEqual((node["path"], node["data"], node["stat"]["version"]), (self.path, "data", 0))

    def test_what_is_not_there(self):
        for verb in ("get", "stat", "ls", "acl", "tree", "rm", "locks", "break", "revoke"):
            status, _, err = self.zklock(verb, self.path + "/none")
            self.assertEqual(status, 1, verb)
            self.assertTrue(err.startswith("zklock: "), verb)
            self.assertEqual(err.count("\n"), 1, verb)

    def test_set_with_a_version(self):
        self.assertEqual(self.zklock("set", "--version", "0", self.path, "a")[0], 0)
        self.assertEqual(self.zklock("set", "--version", "0", self.path, "b")[0], 1)
        self.assertEqual(self.zklock("get", self.path)[1], "a")
        self.assertEqual(self.zklock("set", self.path)[0], 120)
        self.assertEqual(self.zklock("set", "--", self.path, "-1")[0], 0)
        self.assertEqual(self.zklock("get", self.path)[1], "-1")

    def test_create(self):
        self.assertEqual(self.zklock("create", self.path)[0], 1)
        deep = self.path + "/a/b"
        self.assertEqual(self.zklock("create", deep)[0], 1)
        self.assertEqual(self.zklock("create", "-p", deep)[0], 0)
        one = self.zklock("create", "--mode", "sequential", deep + "/n-")[1]
        self.assertEqual(one, deep + "/n-0000000000\n")
        self.assertEqual(self.zklock("create", "--mode", "ephemeral", deep + "/e")[0], 120)
        self.assertEqual(self.zklock("create", "--mode", "ttl", deep + "/t")[0], 120)
        self.assertEqual(self.zklock("create", "--mode", "ttl", "--ttl", "1h", deep + "/t")[0], 0)

    def test_options_of_zkcli(self):
        for option, words in (("-e", "zklock run PATH COMMAND"), ("-s", "--mode sequential"), ("-c", "--mode container"),
                              ("-t", "--mode ttl")):
            status, _, err = self.zklock("create", option, self.path + "/n")
            self.assertEqual(status, 120)
            self.assertIn(option + ": ", err)
            self.assertIn(words, err)

    def test_what_to_do_is_said_in_options(self):
        for arguments, words in ((["create", self.path + "/a/b"], "--parents"),
                                 (["create", "--acl", "creator", self.path + "/mine"], "--auth-file")):
            _, _, err = self.zklock(*arguments)
            self.assertIn(words, err)
            self.assertNotIn("()", err)
        self.zklock("create", "--acl", "world:anyone:ca", self.path + "/closed")
        _, _, err = self.zklock("get", self.path + "/closed")
        self.assertIn(f"zklock acl {self.path}/closed", err)
        self.assertNotIn("()", err)
        self.zklock("create", "--acl", "world:anyone:ra", self.path + "/fixed")  # where nothing may be created
        _, _, err = self.zklock("create", self.path + "/fixed/x")
        self.assertIn(f"`zklock acl {self.path}/fixed`", err)

    def test_rm(self):
        self.zklock("create", self.path + "/below")
        self.assertEqual(self.zklock("rm", self.path)[0], 1)
        self.assertEqual(self.zklock("rm", "-r", self.path)[0], 120)  # there is nobody to ask
        self.assertEqual(self.zklock("rm", "-r", "--yes", self.path)[0], 0)
        self.assertEqual(self.zklock("stat", self.path)[0], 1)

    def test_ls(self):
        for name in ("b", "a"):
            self.zklock("create", f"{self.path}/{name}", name)
        self.assertEqual(self.zklock("ls", self.path)[1], "a\nb\n")
        self.assertEqual([line.split()[-1] for line in self.zklock("ls", "-l", self.path)[1].splitlines()], ["a", "b"])
        entries = json.loads(self.zklock("ls", "--json", self.path)[1])
        self.assertEqual([(e["name"], e["stat"]["data_length"]) for e in entries], [("a", 1), ("b", 1)])

    def test_tree(self):
        self.zklock("create", "-p", self.path + "/a/b/c", "x")
        self.zklock("create", self.path + "/d")
        _, out, _ = self.zklock("tree", self.path)
        self.assertEqual(out, f"{self.path}\n|-- a\n|   `-- b\n|       `-- c  1 B\n`-- d\n")
        self.assertEqual(self.zklock("tree", "--depth", "1", self.path)[1], f"{self.path}\n|-- a\n`-- d\n")

    def test_count(self):
        self.zklock("create", "-p", self.path + "/a/b/c")
        self.assertEqual(self.zklock("tree", "--count", self.path)[1], "3\n")
        self.assertEqual(self.zklock("tree", "--count", "--depth", "1", self.path)[0], 120)
        self.assertEqual(self.zklock("tree", "--count", self.path + "/none")[0], 1)

    def test_whoami(self):
        self.assertIn("ip:127.0.0.1\n", self.zklock("whoami")[1])
        self.assertIn({"scheme": "ip", "id": "127.0.0.1"}, json.loads(self.zklock("whoami", "--json")[1]))

    def test_stat(self):
        self.assertIn("4 bytes", self.zklock("stat", self.path)[1])
        self.assertEqual(json.loads(self.zklock("stat", "--json", self.path)[1])["ephemeral_owner"], None)

    def test_acl(self):
        self.assertEqual(self.zklock("acl", self.path)[1], "world:anyone:cdrwa\n")
        self.assertEqual(self.zklock("acl", "--set", "world:anyone:ra,ip:127.0.0.1:cdrwa", self.path)[0], 0)
        self.assertEqual(self.zklock("acl", self.path)[1], "world:anyone:ra\nip:127.0.0.1:cdrwa\n")
        self.assertEqual(self.zklock("acl", "--set", "world:anyone:z", self.path)[0], 120)
        self.assertEqual(self.zklock("acl", "--set", ":anyone:r", self.path)[0], 120)

    def test_a_wrong_path(self):
        for path in ("none", "/a//b", "/a/", "/a/../b"):
            self.assertEqual(self.zklock("get", path)[0], 120, path)

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([support.PROGRAM, "ls", "--connect", support.SERVERS, "/"], stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 125)


    def test_nobody_reads(self):
        for verb in ("tree", "ls"):
            ours, theirs = os.pipe()
            os.close(ours)
            done = subprocess.run([support.PROGRAM, verb, "--connect", support.SERVERS, "/"], stdout=theirs,
                                  stderr=subprocess.PIPE)
            os.close(theirs)
            self.assertEqual((done.returncode, done.stderr), (128 + signal.SIGPIPE, b""))


class Watch(support.CliTest):
    def test_every_change(self):
        p = self.start("watch", self.path)
        p.error_line("watching")
        self.zklock("create", self.path, "a")
        self.assertEqual(p.line(), f"created {self.path}")
        self.zklock("set", self.path, "b")
        self.assertEqual(p.line(), f"data {self.path} version 1")
        self.zklock("create", self.path + "/c")
        self.assertEqual(p.line(), f"child-created {self.path}/c")
        self.zklock("rm", self.path + "/c")
        self.assertEqual(p.line(), f"child-removed {self.path}/c")
        self.zklock("rm", self.path)
        self.assertEqual(p.line(), f"removed {self.path}")
        p.signal(signal.SIGINT)
        self.assertEqual(p.end(), -signal.SIGINT)

    def test_all_below(self):
        p = self.start("watch", "-r", self.path)
        p.error_line("watching")
        self.zklock("create", "-p", self.path + "/a/b", "1")
        self.zklock("set", self.path + "/a/b", "2")
        self.zklock("rm", self.path + "/a/b")
        for line in ("created ", "created /a", "created /a/b", "data /a/b", "removed /a/b"):
            word, _, below = line.partition(" ")
            self.assertEqual(p.line(), f"{word} {self.path}{below}")
        p.signal(signal.SIGINT)
        self.assertEqual(p.end(), -signal.SIGINT)

    def test_so_many_below(self):
        p = self.start("watch", "-r", "-n", "2", self.path)
        p.error_line("watching")
        self.zklock("create", "-p", self.path + "/a")
        self.assertEqual(p.end(), 0)

    def test_so_many(self):
        p = self.start("watch", "-n", "1", self.path)
        p.error_line("watching")
        self.zklock("create", self.path)
        self.assertEqual(p.end(), 0)


if __name__ == "__main__":
    support.main()
