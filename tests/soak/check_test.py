"""check.py sees each violation that is planted into a small history, and none in the history as it is."""

import json
import os
import tempfile
import unittest

import check

# Two processes, A (w0.1) and B (w1.2), which share everything; T is in milliseconds.
GOOD = {
    "conductor": """
        0 running 0 6.0
        500 fault 1 process-killed w2.3
        500 kill 1 w2.3
        900 healed 1
        9000 seen 0 ["sees 3 77 w0 w1", "sees 3 77 w0 w1"]
        9999 finished 0
    """,
    "operator": """
        3000 removing 0 /soak/mutex-0/c
        9001 final 0 counter 12
        9001 final 0 version records/mutex-0 3
        9001 final 0 version effects/w0 1
        9001 final 0 version effects/w1 1
        9001 final 0 left queue 0
        9001 final 0 left takes 0
        9001 final 0 account 0 990
        9001 final 0 account 1 1007
        9001 final 0 account 2 1003
    """,
    "w0.1": """
        10 want 1 mutex-0 x
        100 got 1 1000 0 3000 /soak/mutex-0/a
        110 commit 2 1
        120 end 2 yes 1001 1
        200 lease 1 4000
        300 let 1 held
        2000 want 3 mutex-0 x
        2100 got 3 3000 0 6000 /soak/mutex-0/c
        3100 lost 3 5
        3200 let 3 lost
        10 add 4 5
        20 end 4 yes 5
        10 id 5
        20 end 5 yes 1
        10 move 11 0 1 7
        20 end 11 yes
        10 move 12 0 2 3
        20 end 12 unknown connection lost
        10 put 6 queue one
        20 end 6 yes
        10 put 7 takes two
        20 end 7 unknown lost
        30 finish 8 queue three
        40 end 8 yes
        5000 want 9 shared r
        5100 got 9 5000 0 8000 /soak/shared/a
        5300 let 9 held
        5000 want 10 semaphore 2
        5100 got 10 5000 0 8000 /soak/semaphore/a,/soak/semaphore/b
        5300 let 10 held
    """,
    "w1.2": """
        20 want 1 mutex-0 x
        301 got 1 2000 0 4000 /soak/mutex-0/b
        310 commit 2 1
        320 end 2 yes 2001 2
        330 commit 3 1
        340 end 3 unknown connection lost
        400 let 1 held
        3000 want 4 mutex-0 x
        3010 got 4 4000 0 7000 /soak/mutex-0/d
        3020 let 4 held
        10 add 5 7
        20 end 5 yes 12
        10 id 6
        20 end 6 yes 2
        10 put 7 queue three
        20 end 7 yes
        30 finish 8 queue one
        40 end 8 yes
        10 take 9 takes
        50 end 9 yes two
        5000 want 10 shared r
        5200 got 10 5001 0 8000 /soak/shared/b
        5300 let 10 held
        5000 want 11 semaphore 1
        5100 got 11 5001 0 8000 /soak/semaphore/c
        5300 let 11 held
    """,
    # Killed with a lock that nobody else may have before its lease has ended.
    "w2.3": """
        10 want 1 mutex-1 x
        100 got 1 1000 0 3000 /soak/mutex-1/a
        450 add 2 9
    """,
    "w3.4": """
        10 want 1 mutex-1 x
        480 got 1 2000 0 3000 /soak/mutex-1/b
        500 let 1 held
    """,
}


def violations(changes=()):
    """What is found when `changes`, (process, line, line instead), were made."""
    histories = {process: text for process, text in GOOD.items()}
    for process, line, instead in changes:
        assert histories[process].count(line) == 1, line
        histories[process] = histories[process].replace(line, instead)
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "history"))
        for process, text in histories.items():
            with open(os.path.join(directory, "history", process + ".txt"), "w", encoding="utf-8") as file:
                for line in filter(None, map(str.strip, text.splitlines())):
                    words = line.split(" ")
                    words[0] += "000000"
                    if words[1] == "got":
                        words[5] += "000000"
                    if words[1] == "lease":
                        words[3] += "000000"
                    file.write(" ".join(words) + "\n")
        judge = check.Judge(check.Run(directory))
        "\n".join(judge.summary())
        return judge.violations


class Planted(unittest.TestCase):
    """Each test makes one change."""

    def sees(self, text, *changes):
        found = violations(changes)
        self.assertTrue(any(text in v for v in found), found)
        return found

    def test_nothing(self):
        self.assertEqual(violations(), [])

    def test_two_owners(self):
        self.sees("two owners", ("w1.2", "301 got 1", "299 got 1"))

    def test_owner_that_was_stopped_is_one_until_its_lease_ends(self):
        self.sees("two owners", ("w0.1", "300 let 1 held", "8000 lost 1 3"))

    def test_owner_that_was_killed_is_one_until_then(self):
        self.sees("two owners", ("w3.4", "480 got 1 2000 0 3000", "250 got 1 2000 0 3000"))

    def test_writer_with_a_reader(self):
        self.sees("two owners", ("w1.2", "want 10 shared r", "want 10 shared x"))

    def test_too_many_permits(self):
        self.sees("more than 3 permits", ("w1.2", "want 11 semaphore 1", "want 11 semaphore 2"))

    def test_operator_excuses_only_one_node(self):
        self.sees("two owners", ("operator", "/soak/mutex-0/c", "/soak/mutex-0/other"),
                  ("w0.1", "3100 lost 3 5", "8000 lost 3 3"), ("w0.1", "3200 let 3 lost", "8001 let 3 lost"))

    def test_body_that_is_not_cancelled(self):
        self.sees("was cancelled 2.20 s after", ("w0.1", "5300 let 9 held", "10200 cancelled 9 lost"))

    def test_body_with_a_margin(self):
        early = "5200 margin 9 1000000000\n9100 cancelled 9 held"
        self.sees("was cancelled 2.10 s after its margin began",
                  ("w0.1", "5300 let 9 held", early))

    def test_body_of_a_process_that_was_stopped(self):
        self.assertEqual(violations([("w0.1", "5300 let 9 held", "10200 cancelled 9 lost"),
                                     ("conductor", "9999 finished 0", "9900 continue 1 w0.1\n9999 finished 0")]), [])

    def test_operator_is_not_noticed(self):
        self.sees("in a node that was deleted", ("w0.1", "2100 got 3 3000 0 6000", "2100 got 3 3000 0 9000"),
                  ("w0.1", "3100 lost 3 5", "7000 lost 3 5"), ("w0.1", "3200 let 3 lost", "7001 let 3 lost"))

    def test_token_falls(self):
        self.sees("the token does not rise", ("w1.2", "301 got 1 2000 0", "301 got 1 999 7"))

    def test_commit_of_a_former_owner(self):
        self.sees("a former owner's commit", ("w0.1", "120 end 2 yes 1001 1", "120 end 2 yes 2002 3"))

    def test_commit_that_is_lost(self):
        self.sees("commits under mutex-0", ("operator", "records/mutex-0 3", "records/mutex-0 1"))

    def test_nobody_gets_the_lock(self):
        self.sees("nobody got it", ("w1.2", "3010 got 4", "93010 got 4"),
                  ("w1.2", "3020 let 4 held", "93020 let 4 held"))

    def test_acquire_that_never_ends(self):
        self.sees("never ended", ("w1.2", "3010 got 4 4000 0 7000 /soak/mutex-0/d", "3010 session 0 connected 1"),
                  ("w1.2", "3020 let 4 held", "3020 session 0 connected 1"))

    def test_addition_twice(self):
        self.sees("sum of the counter", ("operator", "counter 12", "counter 22"))

    def test_addition_lost(self):
        self.sees("sum of the counter", ("operator", "counter 12", "counter 7"))

    def test_additions_with_the_same_part(self):
        self.sees("overlap", ("w1.2", "20 end 5 yes 12", "20 end 5 yes 11"))

    def test_addition_of_a_killed_process_counts_or_not(self):
        self.assertEqual(violations([("operator", "counter 12", "counter 21")]), [])

    def test_transaction_by_half(self):
        self.sees("the accounts have 2997 together", ("operator", "account 2 1003", "account 2 1000"))

    def test_transaction_of_a_lost_answer_counts_or_not(self):
        self.assertEqual(violations([("operator", "account 0 990", "account 0 993"),
                                     ("operator", "account 2 1003", "account 2 1000")]), [])

    def test_transaction_lost(self):
        self.sees("account 1: it has 1000, and not between 1007 and 1007",
                  ("operator", "account 0 990", "account 0 997"), ("operator", "account 1 1007", "account 1 1000"))

    def test_transaction_twice(self):
        self.sees("account 1: it has 1014", ("operator", "account 0 990", "account 0 983"),
                  ("operator", "account 1 1007", "account 1 1014"))

    def test_id_twice(self):
        self.sees("the id 2", ("w0.1", "20 end 5 yes 1", "20 end 5 yes 2"))

    def test_item_lost(self):
        self.sees("one was put, and never done", ("w1.2", "40 end 8 yes", "40 end 8 no lock lost"))

    def test_item_twice(self):
        self.sees("three was done 2 times", ("w1.2", "30 finish 8 queue one", "30 finish 8 queue three"))

    def test_effect_twice(self):
        self.sees("effects of w0", ("operator", "effects/w0 1", "effects/w0 2"))

    def test_item_from_nowhere(self):
        self.sees("three came out", ("w1.2", "20 end 7 yes", "20 end 7 no such node"))

    def test_items_left(self):
        self.sees("at the end there are 1 items", ("operator", "left queue 0", "left queue 1"))

    def test_taken_item_lost(self):
        self.sees("1 items are lost", ("w0.1", "20 end 7 unknown lost", "20 end 7 yes"),
                  ("w1.2", "50 end 9 yes two", "50 end 9 no cancelled"))

    def test_caches_differ(self):
        self.sees("caches and groups differ", ("conductor", '["sees 3 77 w0 w1", ', '["sees 3 78 w0 w1", '))

    def test_group_without_a_member(self):
        self.sees("not complete", ("conductor", '["sees 3 77 w0 w1", "sees 3 77 w0 w1"]',
                                   json.dumps(["sees 3 77 w0", "sees 3 77 w0"])))

    def test_run_without_an_end(self):
        self.sees("not come to its end", ("conductor", "9999 finished 0", "9999 healed 0"))

    def test_process_that_complains(self):
        self.sees("the cache went back", ("w0.1", "5300 let 9 held", "5300 bad 0 the cache went back"))


if __name__ == "__main__":
    unittest.main()
