"""What zklock prints with --json is what docs/zklock.schema.json says, and nothing else."""

import copy
import json
import os
import re
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

import support

SCHEMA = os.path.join(os.environ["ZKLOCK_SOURCES"], "..", "..", "docs", "zklock.schema.json")


def strict(schema):
    """The same, without properties that it does not name: what is printed is to be described."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "$ref" not in schema:
        result["unevaluatedProperties"] = False
    return result


@unittest.skipUnless(jsonschema, "python3-jsonschema is not installed")
class Schema(support.CliTest):
    @classmethod
    def setUpClass(cls):
        with open(SCHEMA) as f:
            cls.schema = json.load(f)

    def check(self, what, output):
        # A lock alone is closed, and the lock that a watched one is made of is not: allOf.
        schema = strict(self.schema)
        if what == "locks-watch":
            del schema["$defs"]["locks"]["unevaluatedProperties"]
        rule = {"$schema": schema["$schema"], "$ref": f"#/$defs/{what}", "$defs": schema["$defs"]}
        jsonschema.Draft202012Validator(rule).validate(output)
        jsonschema.Draft202012Validator(self.schema).validate(output)

    def output(self, *arguments, expected=0):
        status, out, err = self.zklock(*arguments)
        self.assertEqual(status, expected, err)
        return json.loads(out)

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_it_refuses_what_is_wrong(self):
        self.hold()
        right = self.output("locks", "--json", self.path)
        self.check("locks", right)
        for spoil in (lambda j: j.pop("kind"), lambda j: j.update(kind="none"), lambda j: j.update(more=1),
                      lambda j: j["holders"][0].update(token="1"), lambda j: j["holders"][0].update(more=1)):
            wrong = copy.deepcopy(right)
            spoil(wrong)
            with self.assertRaises(jsonschema.ValidationError):
                self.check("locks", wrong)

    def test_locks(self):
        self.zklock("create", self.path)
        self.check("locks", self.output("locks", "--json", self.path))
        self.hold(path=self.path + "/mutex")
        self.start("run", "-v", self.path + "/mutex", "true").error_line("waiting behind 1")
        self.zklock("create", self.path + "/mutex/foreign")
        self.zklock("create", "--mode", "sequential", self.path + "/mutex/x-lock-", "no JSON")
        self.hold("-s", path=self.path + "/rw")
        self.hold("--semaphore", "2", "--data", '{"host": 1, "pid": null, "user": [], "more": true}',
                  path=self.path + "/permits")
        self.hold("--on-revoke", "ignore", path=self.path + "/leader", verb="elect")
        self.zklock("revoke", self.path + "/leader")
        for name in ("mutex", "rw", "permits", "leader"):
            self.check("locks", self.output("locks", "--json", f"{self.path}/{name}"))
        found = self.output("locks", "-r", "--json", self.path)
        self.assertEqual(len(found["locks"]), 4)
        self.check("locks-recursive", found)

    def test_data_that_are_no_text(self):
        self.zklock("create", self.path)
        self.zklock("create", "--mode", "sequential", self.path + "/x-lock-")
        p = support.Process(["set", "-f", "-", self.path + "/x-lock-0000000000"])
        p.process.communicate(b"\xff\xfe")
        seen = self.output("locks", "--json", self.path)
        self.check("locks", seen)
        self.assertEqual(seen["holders"][0]["data"], {"base64": "//4="})
        self.check("get", self.output("get", "--json", self.path + "/x-lock-0000000000"))

    def test_watched_locks(self):
        for how in (["--watch"], ["--watch", "-r"]):
            self.hold(path=self.path + how[-1])
            p = self.start("locks", "--json", *how, self.path + how[-1])
            self.check("locks-watch", json.loads(p.line()))

    def test_nodes(self):
        self.zklock("create", "-p", self.path + "/child", "data")
        self.check("get", self.output("get", "--json", self.path))
        self.check("stat", self.output("stat", "--json", self.path))
        self.check("whoami", self.output("whoami", "--json"))
        holder = self.hold(path=self.path + "/lock")
        self.check("ls", self.output("ls", "--json", self.path + "/lock"))
        self.check("ls", self.output("ls", "--json", self.path + "/child"))
        self.assertIsNone(holder.process.poll())

    def test_queues(self):
        self.zklock("queue", "put", self.path, "item")
        self.check("queue-ls", self.output("queue", "ls", "--json", self.path))
        self.check("queue-ls", self.output("queue", "ls", "--json", self.path + "/none"))
        self.check("queue-dead", self.output("queue", "dead", "--json", self.path))
        dead = {"name": "entry-100-0000000000", "since": "2026-01-31T12:00:00.123Z", "reason": "failed",
                "item": {"base64": "//4="}}
        self.check("queue-dead", [dead])  # no command makes one

    def test_doctor_and_bench(self):
        self.hold()
        status, out, _ = self.zklock("doctor", "--json", self.path)
        self.assertIn(status, (0, 1))
        self.check("doctor", json.loads(out))
        self.check("cost", self.output("cost", "--json", self.path))
        self.zklock("create", self.path + "-bench")
        self.addCleanup(self.zklock, "rm", "-r", "--yes", self.path + "-bench")
        self.check("bench", self.output("bench", "--json", "--clients", "2", "--duration", "50ms",
                                        self.path + "-bench"))

    def test_every_command_has_a_definition(self):
        for verb in re.split("Subcommands:\n", self.zklock("--help")[1])[1].split("\n\n")[0].splitlines():
            name = verb.split()[0]
            if " --json " in self.zklock(name, "--help")[1]:
                self.assertIn(name, self.schema["$defs"])


if __name__ == "__main__":
    support.main()
