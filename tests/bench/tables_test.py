#!/usr/bin/python3
"""scripts/docs/targets.py and plots.py on figures that are made up, and scripts/bench.sh's arguments. Nothing is
measured."""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))

import plots  # noqa: E402
import targets  # noqa: E402

TEXT = """a title
figure a table, per waiter | raw | CPU us  10
  raw   10 us
figure a table, per waiter | zkasio | CPU us  12
figure a table, per waiter | raw | CPU us  20
figure a table, per waiter | zkasio | CPU us  20
figure a table, per waiter | raw | CPU us  10
figure a table, per waiter | zkasio | CPU us  30
figure plain | zkasio  1e+06
"""


def ratio(figures):
    return figures.ratio(("a table, per waiter", "zkasio", "CPU us"), ("a table, per waiter", "raw", "CPU us"))


class Tables(unittest.TestCase):
    def setUp(self):
        self.tree = plots.figures_of(TEXT)

    def line(self, measured, **limit):
        return targets.table("x", self.tree, [targets.Row("x", "w", measured, **limit)])[0]

    def test_reads_only_lines_of_figures_and_keeps_rounds(self):
        self.assertEqual(self.tree["a table, per waiter"]["raw"]["CPU us"], [10, 20, 10])
        self.assertEqual(self.tree["plain"]["zkasio"], [1e6])
        self.assertEqual(set(self.tree), {"a table, per waiter", "plain"})

    def test_a_ratio_is_the_median_of_the_rounds(self):
        self.assertEqual(self.line(ratio, at_most=1.2), ("w", "<= 1.2", "1.2", "met"))

    def test_a_miss_says_by_how_much(self):
        self.assertEqual(self.line(ratio, at_most=1)[3], "missed by 20 %")
        self.assertEqual(self.line(ratio, at_least=2.4)[1:], (">= 2.4", "1.2", "missed by 50 %"))
        self.assertEqual(self.line(lambda f: 3, at_most=0)[3], "missed by 3")

    def test_the_best_of_others_that_were_measured(self):
        def best(better):
            return lambda f: f.best(("plain", "zkasio"), [("plain", "absent"), ("a table, per waiter", "raw", "CPU us"),
                                                          ("a table, per waiter", "zkasio", "CPU us")], better)
        self.assertEqual(self.line(best(min), at_least=1)[2], "100 000")
        self.assertEqual(self.line(best(max), at_least=1)[2], number(1e6 / 12))

    def test_what_was_not_measured_is_no_miss(self):
        self.assertEqual(self.line(lambda f: f.median("plain", "kazoo"), at_most=1)[2:],
                         ("-", "not measured: plain, kazoo"))

    def test_each_part_has_targets_and_each_target_a_part(self):
        self.assertEqual({row.part for row in targets.ROWS}, set(plots.MEASUREMENTS))
        for row in targets.ROWS:
            self.assertIn("not measured", targets.table(row.part, {}, [row])[0][3], row.what)

    def test_the_figures_in_the_repository_are_of_this_form(self):
        import json
        figures = json.loads((ROOT / "docs/pictures/bench.json").read_text(encoding="utf-8"))
        for part, tree in figures.items():
            lines = targets.table(part, tree)
            self.assertTrue(any("not measured" not in line[3] for line in lines), part)


def number(value):
    return targets.number(value)


class Arguments(unittest.TestCase):
    def bench(self, *arguments):
        return subprocess.run([ROOT / "scripts/bench.sh", *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_help_names_all_parts(self):
        done = self.bench("--help")
        self.assertEqual(done.returncode, 0)
        for part in plots.MEASUREMENTS:
            self.assertIn(part, done.stdout)

    def test_wrong_arguments_are_refused_before_anything_is_done(self):
        for arguments, said in ((["latency"], "unknown part latency"), (["--fast"], "unknown option --fast"),
                                (["lock", "--connect"], "--connect needs a value")):
            done = self.bench(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
