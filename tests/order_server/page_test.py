"""The live page, in a real browser. With ZKASIO_PICTURES=DIR in the environment its pictures are put there."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

from browser import Browser, there_is_one
from instances import LONG, OrderServerTest, eventually, free_port, main, paced_ms

TAB, ENTER = "\ue004", "\ue007"


@unittest.skipUnless(there_is_one(), "no chromium with its chromedriver")
class Page(OrderServerTest):
    def setUp(self):
        super().setUp()
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def instances(self, **options_of_b):
        """a, whose page is looked at; b, which is ill-treated; and c."""
        usual = {"demo": True, "bank-time": 1000}  # long enough to be seen
        all_three = [self.instance(n, **{**usual, **(options_of_b if n == "b" else {})}) for n in "abc"]
        for i in all_three:
            i.ready()
        self.open(all_three[0].port)
        eventually(lambda: self.browser.run("return document.querySelectorAll('#instances > li').length") == 3,
                   of="the page shows all instances")
        return all_three

    def open(self, port):
        self.browser.open(f"http://127.0.0.1:{port}/")

    def lock(self, name):
        """What the page says of a lock: (holder, how many wait), ("", 0) where it is free or not shown."""
        script = "const l = document.querySelector(`[data-lock='${arguments[0]}']`);" \
                 "return l ? [l.dataset.holder, Number(l.dataset.waiting)] : ['', 0];"
        return tuple(self.browser.run(script, name))

    def card(self, name, what):
        script = "return document.querySelector(`[data-instance='${arguments[0]}'] .${arguments[1]}`).textContent"
        return self.browser.run(script, name, what)

    def log(self):
        return self.browser.run("return [...document.querySelectorAll('#log li')].map((e) => e.textContent)")

    def in_the_log(self, pattern):
        eventually(lambda: any(re.search(pattern, line) for line in self.log()), of=f"the page says: {pattern}")

    def button(self, name, what):
        self.browser.click(f"[data-instance='{name}'] .{what}")

    def assert_quiet_console(self, unless_source=None):
        self.assertEqual([e for e in self.browser.console() if e["source"] != unless_source], [])

    def test_a_queue_of_200_outlives_its_holder_and_drains(self):
        a, b, c = self.instances(**{"bank-time": LONG})
        a.ask("PUT", "/orders/rush", {"item": "tea"})
        b.pay("rush", LONG)
        self.at_the_bank("rush")
        waiters = [(a, c)[i % 2].pay("rush", LONG) for i in range(200)]
        eventually(lambda: self.lock("rush")[1] == 200, of="the page shows 200 who wait")
        self.assertRegex(self.lock("rush")[0], r"^b/\d+$")
        self.assertEqual(self.browser.run("return document.querySelectorAll('[data-lock=rush] .queue i').length"), 201)
        self.button("b", "kill")
        self.assertEqual(b.process.wait(60), -signal.SIGKILL)
        self.in_the_log(r"rush: [ac]/\d+ \(token \d+\) replaces b/\d+ \(token \d+\)")
        eventually(lambda: self.lock("rush") == ("", 0), of="the page shows that all are gone")
        self.assertEqual(self.card("b", "state"), "session ended")
        self.assertEqual(sorted(w.get()[0] for w in waiters), [200] + [409] * 199)
        self.assert_paid_once("rush")
        self.assert_quiet_console()

    def test_who_is_paused_is_replaced_and_fenced_off(self):
        a, b, c = self.instances(**{"bank-time": 10_000})  # until it is paused
        a.ask("PUT", "/orders/o", {"item": "tea"})
        first = b.pay("o", LONG)
        self.at_the_bank("o")
        self.button("b", "pause")
        eventually(lambda: b.state() == "T", of="b is stopped")
        second = c.pay("o", LONG)
        self.in_the_log(r"the session of b has ended")
        self.assertEqual(second.get()[0], 200)
        self.button("b", "resume")
        self.assertEqual(json.loads(first.get()[1])["outcome"], "fenced off")
        self.in_the_log(r"b was fenced off")
        eventually(lambda: self.card("b", "fenced") == "1" and self.card("b", "state") == "alive", of="b is back")
        self.assert_paid_once("o")
        self.assert_quiet_console()

    def test_the_instance_that_sent_the_page_is_paused_and_goes_on(self):
        a, b, c = self.instances()
        self.assertEqual(self.log(), [])
        self.assertIn("Pause an instance", self.browser.run(self.VISIBLE, "nothing-yet"))
        self.button("a", "pause")
        eventually(lambda: a.state() == "T", of="a is stopped")
        self.assertEqual(self.browser.run(self.VISIBLE, "nothing-yet"), "")
        self.in_the_log(r"the session of a has ended")
        self.button("c", "kill")  # by b, which does not know a's session any more
        self.assertEqual(c.process.wait(60), -signal.SIGKILL)
        c.start()
        c.ready()
        self.button("a", "resume")
        eventually(lambda: a.state() != "T", of="a goes on")
        self.in_the_log(r"a has a new session")
        self.assertFalse([line for line in self.log() if "no answer" in line or "refused" in line])
        self.assert_quiet_console(unless_source="network")  # Chromium tells there that it has lost the connection to a

    VISIBLE = "const e = document.getElementById(arguments[0]); return e.offsetHeight > 0 ? e.innerText : ''"

    def test_the_page_has_one_address(self):
        a, _, _ = self.instances()
        self.browser.open(f"http://localhost:{a.port}/")
        self.assertEqual(self.browser.run("return location.origin"), f"http://127.0.0.1:{a.port}")

    def test_a_waiter_is_cancelled_with_the_keyboard(self):
        a, b, c = self.instances(**{"bank-time": LONG})
        a.ask("PUT", "/orders/o", {"item": "tea"})
        first = b.pay("o", LONG)
        self.at_the_bank("o")
        stays = c.pay("o", LONG)
        eventually(lambda: self.lock("o")[1] == 1, of="one waits")
        leaves = a.pay("o", LONG)
        eventually(lambda: self.lock("o")[1] == 2, of="two wait")
        focused = "const e = document.activeElement; return [e.ariaLabel, getComputedStyle(e).outlineStyle]"
        eventually(lambda: self.browser.press(TAB) or self.browser.run(focused)[0] == "Cancel the last who waits for o",
                   of="the button is reached by keys")
        self.assertEqual(self.browser.run(focused)[1], "solid", "and one sees where one is")
        self.browser.press(ENTER)
        self.assertEqual(leaves.get(), (503, '{"error":"cancelled"}'))
        eventually(lambda: self.lock("o")[1] == 1, of="one is left")
        self.assertFalse(first.done() or stays.done())
        self.assert_quiet_console()

    def test_the_page_outlives_its_instance(self):
        a, _, _ = self.instances()
        self.button("a", "kill")
        a.process.wait(60)
        self.in_the_log(r"the session of a has ended")
        self.assertRegex(self.browser.run("return document.getElementById('connection').textContent"), "live, by [bc]")
        self.assert_quiet_console(unless_source="network")  # Chromium tells there that a server has gone

    def test_the_last_that_runs_is_not_paused_and_silence_is_not_green(self):
        a, b, c = self.instances()
        for name, stopped in (("b", b), ("c", c)):
            self.button(name, "pause")
            eventually(lambda: stopped.state() == "T", of=f"{name} is stopped")
            eventually(lambda: self.card(name, "state") != "alive", of=f"the page shows that {name} is silent")
        self.button("a", "pause")
        self.in_the_log(r"refused: no other instance runs that could resume this one")
        self.assertNotEqual(a.state(), "T")

        greens = "window.greens = 0; const badges = document.querySelectorAll('.badge');" \
                 "new MutationObserver(() => badges.forEach((b) => { if (b.classList.contains('good')) greens += 1; }))" \
                 ".observe(document.body, {subtree: true, childList: true, attributes: true});"
        connection = lambda: self.browser.run("return document.getElementById('connection').textContent")
        a.process.send_signal(signal.SIGSTOP)
        eventually(lambda: connection().startswith("nothing heard from"), of="the page hears nothing")
        eventually(lambda: self.card("a", "state") != "alive", of="nobody is shown as alive")
        self.browser.run(greens)
        first = connection()
        eventually(lambda: connection() != first, of="the page asks another instance")
        self.assertEqual(self.browser.run("return window.greens"), 0)
        a.process.send_signal(signal.SIGCONT)
        eventually(lambda: connection() == "live, by a", of="the page hears a again")
        for name, stopped in (("b", b), ("c", c)):
            self.button(name, "resume")
            eventually(lambda: stopped.state() != "T", of=f"{name} goes on")

    def test_it_fits_a_phone_and_the_dark(self):
        self.instances()
        self.browser.look(360, 740, dark=True, phone=True)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 360)
        overlap = "const [a, b] = [...document.querySelectorAll('main > section')].slice(1, 3).map((e) => " \
                  "e.lastElementChild.getBoundingClientRect()); return a.bottom - b.top"
        self.assertLess(self.browser.run(overlap), 0, "nothing lies on something else")
        self.assertEqual(self.browser.run("return getComputedStyle(document.body).backgroundColor"), "rgb(18, 22, 28)")
        names = self.browser.run("return [...document.querySelectorAll('#instances button')].map((b) => b.ariaLabel)")
        self.assertEqual(names, [f"{what} {i}" for i in "abc" for what in ("Kill", "Pause", "Resume")])
        small = "return [...document.querySelectorAll('main button')].filter((b) => b.offsetHeight < 36).length"
        self.assertEqual(self.browser.run(small), 0, "a thumb finds each button")
        self.assert_quiet_console()

    def test_the_demo_is_alive_and_leaves_nothing(self):
        port = free_port(2)
        program = os.path.join(os.environ["ZKASIO_ORDER_SERVER_SOURCES"], "demo.py")
        demo = subprocess.Popen([sys.executable, program, "--server", os.environ["ZKASIO_ORDER_SERVER"], "--connect",
                                 os.environ["ZKASIO_TEST_SERVERS"], "--root", self.root, "--port", str(port),
                                 "--session-timeout", str(paced_ms(3000))],
                                start_new_session=True)
        self.addCleanup(lambda: demo.poll() is None and os.killpg(demo.pid, signal.SIGKILL))
        eventually(lambda: self.browser.open(f"http://127.0.0.1:{port}/") is None, of="it answers")
        eventually(lambda: self.browser.run("return document.querySelectorAll('#instances > li').length") == 2,
                   of="the page shows both")
        eventually(lambda: float(self.browser.run("return document.getElementById('rate').textContent")) > 1,
                   of="locks are handed over")
        if os.environ.get("ZKASIO_PICTURES"):
            self.take_pictures(os.environ["ZKASIO_PICTURES"])
        # The instance that has sent the page: the page goes on, and so do the customers.
        paid = lambda: int(self.card("b", "paid"))
        for _ in range(5):
            self.press_until("a", "pause", "session ended")
            before = paid()
            goes_on = self.within(20, lambda: paid() > before + 3)
            self.press_until("a", "resume", "alive")
            if goes_on:
                break  # otherwise a was stopped while it wrote to the store, which it then keeps locked
        self.assertTrue(goes_on, "b is paid for more than what it had begun")
        pids = [int(self.card(n, "pid")) for n in "ab"]
        os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C: the servers get it, and a SIGTERM of the demo's as well
        self.assertEqual(demo.wait(60), 0)
        self.assertEqual([p for p in pids if os.path.exists(f"/proc/{p}")], [])
        eventually(lambda: not self.nodes(""), of="no node is left")

    @staticmethod
    def within(seconds, what):
        try:
            return bool(eventually(what, limit=paced_ms(1000 * seconds) / 1000))
        except AssertionError:
            return False

    def press_until(self, name, button, state):
        """The page gives up a click that no instance answers for some seconds."""
        for _ in range(5):
            self.button(name, button)
            if self.within(15, lambda: self.card(name, "state") == state):
                return
        self.fail(f"{name} is not: {state}")

    def take_pictures(self, directory):
        samples = "return document.querySelector('#rate-plot .line').getAttribute('d').split('L').length"
        waiting = "return Number(document.body.dataset.waiting)"
        b_pays = "return document.querySelector('[data-lock^=banquet]')?.dataset.holder.startsWith('b/')"
        self.browser.look(1200, 980)
        eventually(lambda: self.browser.run(samples) >= 45, 120, of="there is something in the plots")
        eventually(lambda: self.browser.run(b_pays) and self.browser.run(waiting) > 50, 120, of="b has a lock")
        self.button("b", "pause")
        self.in_the_log(r"replaces b/")
        self.button("b", "resume")
        self.in_the_log(r"b was fenced off")
        for name, size in (("page-light", (1200, 1020, False, False)), ("page-dark", (1200, 1020, True, False)),
                           ("page-phone", (390, 1000, True, True))):
            self.browser.look(*size)
            eventually(lambda: self.browser.run(waiting) > 50, 120, of="many wait")
            self.browser.picture(os.path.join(directory, f"{name}.png"))


if __name__ == "__main__":
    main()
