"""The order server as its clients see it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

from instances import LONG, OrderServerTest, eventually, free_port, main


class Http(OrderServerTest):
    def test_one_of_many_pays(self):
        both = [self.instance("a").ready(), self.instance("b").ready()]
        self.assertEqual(both[0].ask("PUT", "/orders/o1", {"item": "tea", "quantity": 2})[0], 201)
        calls = [both[i % 2].pay("o1") for i in range(40)]
        answers = [c.get() for c in calls]
        self.assertEqual(sorted(status for status, _ in answers), [200] + [409] * 39)
        paid = json.loads(next(body for status, body in answers if status == 200))["order"]
        self.assertEqual((paid["state"], paid["amount"]), ("paid", 700))
        self.assert_paid_once("o1")
        self.assertEqual(json.loads(both[1].ask("GET", "/orders")[1]), [paid])
        self.assertEqual(json.loads(both[1].ask("GET", "/audit")[1]), {"payments": 1, "paid_twice": 0})
        eventually(lambda: not self.nodes("locks"), of="all are gone from the queue")

    def test_what_makes_no_sense_is_refused(self):
        a = self.instance("a").ready()
        self.assertEqual(a.ask("POST", "/orders/nobody/pay")[0], 404)
        self.assertEqual(a.ask("POST", "/orders/a.b/pay")[0], 400)
        self.assertEqual(a.ask("POST", "/orders/o/pay?deadline_ms=-1")[0], 400)
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": "tea", "quantity": 0})[0], 400)
        self.assertEqual(a.ask("PUT", "/orders/o", ["tea"])[0], 400)
        self.assertEqual(a.ask("PUT", "/prices", {"tea": "much"})[0], 400)
        self.assertEqual(a.ask("PUT", "/prices", {"tea": -1})[0], 400)
        self.assertEqual(a.ask("GET", "/nothing")[0], 404)
        a.ask("PUT", "/orders/o", {"item": "gold"})
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": "tea"})[0], 409)
        self.assertEqual(a.ask("POST", "/orders/o/pay")[0], 422)
        self.assertEqual(self.rows("SELECT * FROM payments"), [])

    def test_a_wrong_query_is_refused_and_the_connection_stays(self):
        a = self.instance("a").ready()
        connection = http.client.HTTPConnection("127.0.0.1", a.port, timeout=60)
        self.addCleanup(connection.close)
        connection.connect()
        socket_of_it = connection.sock
        for query in ("deadline_ms=abc", "deadline_ms=", "deadline_ms=1x", "deadline_ms=99999999999999999999999",
                      "deadline_ms=%zz", "other=%zz", "deadline_ms=1.5"):
            connection.request("POST", f"/orders/o/pay?{query}")
            answer = connection.getresponse()
            self.assertEqual(answer.status, 400, query)
            self.assertIn("error", json.loads(answer.read()))
            self.assertIs(connection.sock, socket_of_it)
        for path in ("/orders/%zz/pay", "/orders/%/pay", "/%zz"):
            connection.request("POST", path)
            answer = connection.getresponse()
            self.assertIn(answer.status, (400, 404), path)
            answer.read()
            self.assertIs(connection.sock, socket_of_it)

    def test_what_is_too_long_is_refused(self):
        a = self.instance("a").ready()
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": "t" * 65})[0], 400)
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": ""})[0], 400)
        self.assertEqual(a.ask("PUT", "/prices", {"t" * 65: 1})[0], 400)
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": "tea", "note": "x" * 20_000})[0], 413)
        self.assertEqual(a.ask("PUT", "/orders/o", {"item": "t" * 64})[0], 201)

    def test_what_is_much_too_long_is_not_read(self):
        a = self.instance("a").ready()
        for head in ("PUT /orders/o HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n",
                     "PUT /orders/o HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3B9ACA00\r\n",
                     "GET /orders HTTP/1.1\r\nHost: x\r\nCookie: ", "GET /"):
            with socket.create_connection(("127.0.0.1", a.port), timeout=60) as s:
                sent = 0
                with self.assertRaises((ConnectionResetError, BrokenPipeError)):
                    s.sendall(head.encode())
                    while sent < 100_000_000:
                        sent += s.send(b"x" * 65_536)
                    print("all was taken", head)
        self.assertEqual(a.ask("GET", "/healthz")[0], 200)

    def test_who_sends_slowly_is_cut_off(self):
        a = self.instance("a", **{"request-time": 1000}).ready()
        for before in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", a.port), timeout=60) as s:
                s.sendall(before + b"GET /healthz HTTP/1.1\r\nHost: x\r\n")

                def is_closed():
                    s.settimeout(0.1)
                    try:
                        s.sendall(b"X: y\r\n")
                        while s.recv(4096):
                            pass
                        return True
                    except socket.timeout:
                        return False
                    except OSError:
                        return True

                eventually(is_closed, of="the connection is closed, though a line comes again and again")

    def test_so_many_connections_and_no_more(self):
        a = self.instance("a", connections=3).ready()

        def served():
            """A connection that has got an answer; nothing where it was closed."""
            s = socket.create_connection(("127.0.0.1", a.port), timeout=60)
            self.addCleanup(s.close)
            try:
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                return s if b"200" in s.recv(4096) else None
            except OSError:  # closed while we were sending
                return None

        # Those that have just asked whether it is ready may still be open.
        open_ones = [eventually(served, of="there is room") for _ in range(3)]
        self.assertIsNone(served())
        open_ones[0].close()
        eventually(served, of="there is room again")

    def events(self, instance):
        """The state as /live tells it, again and again."""
        connection = http.client.HTTPConnection("127.0.0.1", instance.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/live")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        while True:
            line = answer.readline()
            if not line:
                return
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def test_the_page_is_told_of_data_that_are_no_text(self):
        # As Curator's are: the bytes of an address.
        a = self.instance("a").ready()
        events = self.events(a)
        self.assertEqual(next(events)["self"], "a")
        node = f"{self.root}/locks/o/_c_5a1e0f2e-2d5f-4d5e-8a0b-6f1d3c7b9e11-lock-0000000000"
        subprocess.run([os.environ["ZKLOCK"], "create", "--connect", os.environ["ZKASIO_TEST_SERVERS"], "--parents",
                        "--file", "-", node], input=b"\xc0\xa8\x00\x07", stdout=subprocess.DEVNULL, check=True)
        state = next(s for s in events if s["locks"])
        self.assertEqual(state["locks"][0]["queue"][0]["who"], "\ufffd\ufffd\0\x07")
        self.assertTrue(next(events), "and it goes on")

    def test_all_viewers_share_one_cache(self):
        a = self.instance("a", **{"bank-time": LONG}).ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        waiters = [a.pay("o", LONG) for _ in range(60)]
        eventually(lambda: len(self.nodes("locks")) == 60, of="all are in line")
        reads = lambda: sum(int(n) for n in re.findall(
            r'zkasio_requests_total\{client="orders",operation="(?:get|exists|children|multi_read)[^"]*"[^}]*\} (\d+)',
            a.ask("GET", "/metrics")[1]))
        if not a.ask("GET", "/metrics")[1]:
            self.skipTest("built without prometheus-cpp")
        shows_all = lambda s: s["locks"] and len(s["locks"][0]["queue"]) == 60
        viewers = [self.events(a)]
        eventually(lambda: shows_all(next(viewers[0])), of="the first one sees all")
        before = reads()
        self.assertGreater(before, 3, "many nodes travel in one request")
        for _ in range(5):
            viewers.append(self.events(a))
            eventually(lambda: shows_all(next(viewers[-1])), of="another one sees all")
        self.assertLess(reads() - before, 15, "what is there is not read again")  # it takes four requests or more each
        self.assertFalse(any(w.done() for w in waiters))

    def test_a_client_that_goes_gives_up_its_place(self):
        a = self.instance("a", **{"bank-time": LONG}).ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        holder = a.pay("o", LONG)
        self.at_the_bank("o")
        waiter = socket.create_connection(("127.0.0.1", a.port))
        request = f"POST /orders/o/pay?deadline_ms={LONG} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        waiter.sendall(request.encode())
        eventually(lambda: len(self.nodes("locks")) == 2, of="it stands in the queue")
        waiter.close()
        eventually(lambda: len(self.nodes("locks")) == 1, of="its node is gone")
        self.assertFalse(holder.done(), "the one ahead goes on")

    def test_a_deadline_ends_the_wait(self):
        a, b = self.instance("a", **{"bank-time": LONG}).ready(), self.instance("b").ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        holder = a.pay("o", LONG)
        self.at_the_bank("o")
        status, body = b.pay("o", 300).get()
        self.assertEqual((status, json.loads(body)["outcome"]), (503, "busy"))
        eventually(lambda: len(self.nodes("locks")) == 1, of="its node is gone")
        self.assertFalse(holder.done())

    def test_who_is_killed_while_paying_is_followed(self):
        a, b = self.instance("a", **{"bank-time": LONG}).ready(), self.instance("b").ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        first = a.pay("o", LONG)
        self.at_the_bank("o")
        second = b.pay("o", LONG)
        eventually(lambda: len(self.nodes("locks")) == 2, of="both are in line")
        a.kill()
        status, body = second.get()
        self.assertEqual((status, json.loads(body)["order"]["paid_by"]), (200, "b"))
        self.assertIsNone(first.get()[0])
        self.assert_paid_once("o")

    def test_who_is_stopped_while_paying_is_fenced_off(self):
        a, b = self.instance("a", **{"bank-time": 4000}).ready(), self.instance("b").ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        first = a.pay("o", LONG)
        self.at_the_bank("o")
        a.stop()
        status, body = b.pay("o", LONG).get()
        self.assertEqual((status, json.loads(body)["order"]["paid_by"]), (200, "b"))
        a.signal(signal.SIGCONT)
        status, body = first.get()
        self.assertEqual((status, json.loads(body)["outcome"]), (503, "fenced off"))
        self.assert_paid_once("o")

    def test_no_order_is_paid_twice_in_a_storm(self):
        both = [self.instance("a").ready(), self.instance("b").ready()]
        orders = [f"o{i}" for i in range(30)]
        for o in orders:
            both[0].ask("PUT", f"/orders/{o}", {"item": "cake"})
        turn = threading.Barrier(5)

        def customer(number):
            for i, o in enumerate(orders):
                if i % 10 == 5:
                    turn.wait(60)
                # Again until somebody says that it is paid, whoever was that: what a client does.
                eventually(lambda o=o, i=i: both[(number + i) % 2].ask("POST", f"/orders/{o}/pay")[0] in (200, 409),
                           of=f"{o} is paid")

        customers = [threading.Thread(target=customer, args=(n,), daemon=True) for n in range(4)]
        for c in customers:
            c.start()
        turn.wait(60)
        both[0].stop()
        eventually(lambda: not [n for n in self.nodes("services") if n.endswith("/a")], of="its session has ended")
        both[0].signal(signal.SIGCONT)
        turn.wait(60)
        both[1].kill()
        both[1].start()
        turn.wait(60)
        both[0].kill()
        both[0].start()
        for c in customers:
            c.join(120)
            self.assertFalse(c.is_alive())
        self.assert_paid_once(*orders)

    def test_the_leader_settles_and_is_followed(self):
        both = {n: self.instance(n, **{"settle-every": 100}).ready() for n in ("a", "b")}
        a = both["a"]
        a.ask("PUT", "/orders/o1", {"item": "tea"})
        self.assertEqual(a.pay("o1").get()[0], 200)
        settled = "SELECT count(*) FROM orders WHERE state = 2"
        eventually(lambda: self.rows(settled) == [(1,)], of="the first is settled")
        a.kill()
        both["b"].ask("PUT", "/orders/o2", {"item": "tea"})
        self.assertEqual(both["b"].pay("o2").get()[0], 200)
        eventually(lambda: self.rows(settled) == [(2,)], of="the second is settled, by whoever is left")

    def test_prices_are_live(self):
        a, b = self.instance("a").ready(), self.instance("b").ready()
        self.assertEqual(a.ask("PUT", "/prices", {"tea": 999})[0], 200)
        eventually(lambda: json.loads(b.ask("GET", "/prices")[1]) == {"tea": 999}, of="the other one has heard of it")
        b.ask("PUT", "/orders/o", {"item": "tea", "quantity": 2})
        self.assertEqual(json.loads(b.pay("o").get()[1])["order"]["amount"], 1998)

    def test_ready_is_who_can_pay(self):
        self.instance("a").ready()
        alone = self.instance("b", connect=f"127.0.0.1:{free_port()}")
        eventually(lambda: alone.ask("GET", "/healthz")[0] == 200, of="it lives")
        self.assertEqual(alone.ask("GET", "/readyz")[0], 503)

    def test_metrics_are_prometheus_text(self):
        a = self.instance("a").ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        self.assertEqual([a.pay("o").get()[0], a.pay("o").get()[0]], [200, 409])
        if not a.ask("GET", "/metrics")[1]:
            self.skipTest("built without prometheus-cpp")
        granted = 'zkasio_lock_waits_total{client="orders",outcome="granted"}'
        eventually(lambda: f"{granted} 3" in a.ask("GET", "/metrics")[1], of="two payments, and it leads")
        status, text = a.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
        label = rf'{name}="(?:[^"\\\n]|\\.)*"'
        series, number = rf"{name}(?:\{{{label}(?:,{label})*\}})?", "[-+]?[0-9.eE+-]+|[-+]?Inf|NaN"
        line = re.compile(rf"# (HELP|TYPE) {name} .*|({series}) ({number})")
        values = {}
        for each in text.splitlines():
            found = line.fullmatch(each)
            self.assertTrue(found, each)
            if found[2]:
                self.assertNotIn(found[2], values)
                values[found[2]] = float(found[3])
        self.assertEqual(values['order_server_payments_total{outcome="paid"}'], 1)
        self.assertEqual(values['order_server_payments_total{outcome="already paid"}'], 1)
        self.assertEqual(values[granted], 2 + 1)
        self.assertEqual(values['zkasio_connected{client="orders"}'], 1)

    def test_buttons_are_for_the_demo_only(self):
        quiet, demo = self.instance("a").ready(), self.instance("b", demo=True).ready()
        another = self.instance("d", demo=True).ready()
        self.assertEqual(quiet.ask("POST", f"/demo/processes/{quiet.process.pid}/kill")[0], 404)
        pid, others = demo.process.pid, os.getpid()
        for origin in ("http://127.0.0.1:1", f"http://localhost:{demo.port}", "http://example.com", "null"):
            self.assertEqual(demo.ask("POST", f"/demo/processes/{pid}/kill", headers={"Origin": origin})[0], 403)
        self.assertEqual(demo.ask("POST", f"/demo/processes/{others}/kill")[0], 404, "no order server")
        self.assertEqual(demo.ask("POST", "/demo/processes/0/kill")[0], 404)
        self.assertEqual(demo.ask("POST", f"/demo/processes/{pid}/eat")[0], 404)
        self.assertIsNone(demo.process.poll())
        self.assertEqual(demo.ask("POST", f"/demo/processes/{pid}/kill",
                                  headers={"Origin": f"http://127.0.0.1:{quiet.port}"})[0], 403, "has no buttons")
        ours = {"Origin": f"http://127.0.0.1:{another.port}"}
        demo.ask("POST", f"/demo/processes/{pid}/kill", headers=ours)
        self.assertEqual(demo.process.wait(60), -signal.SIGKILL)
        for address in ("0.0.0.0", "localhost", "::1"):
            self.assertEqual(self.instance("c", demo=True, address=address).process.wait(60), 1, address)

    def test_it_says_why_it_cannot_start(self):
        a = self.instance("a").ready()
        self.assertEqual(self.instance("b", port=a.port).process.wait(60), 1)
        self.assertEqual(self.instance("c", store="/nowhere/orders").process.wait(60), 1)
        self.assertEqual(a.ask("GET", "/readyz")[0], 200)

    def test_who_asks_for_another_protocol_is_refused(self):
        a = self.instance("a").ready()
        for path in ("/live", "/orders"):
            status, _ = a.ask("GET", path, headers={"Connection": "Upgrade", "Upgrade": "websocket"})
            self.assertEqual(status, 501, path)  # RESTinio sets no limits to such a connection

    def test_a_payment_is_brought_to_its_end_although_it_is_told_twice_to_stop(self):
        a = self.instance("a", **{"bank-time": 1500}).ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        paying = a.pay("o", LONG)
        self.at_the_bank("o")
        a.signal(signal.SIGINT)
        eventually(lambda: self.refuses(a), of="it has begun to end")
        a.signal(signal.SIGTERM)  # a demo that Ctrl-C ends says so as well
        self.assertEqual(a.process.wait(60), 0)
        paying.join(60)

    def refuses(self, instance):
        try:
            socket.create_connection(("127.0.0.1", instance.port), timeout=60).close()
            return False
        except ConnectionRefusedError:
            return True

    def test_it_ends_in_order(self):
        a = self.instance("a", **{"bank-time": LONG}).ready()
        b = self.instance("b").ready()
        a.ask("PUT", "/orders/o", {"item": "tea"})
        b.ask("PUT", "/orders/p", {"item": "tea"})
        first = a.pay("o", LONG)
        self.at_the_bank("o")
        waiter = b.pay("o", LONG)
        eventually(lambda: len(self.nodes("locks")) == 2, of="both are in line")
        self.assertEqual(b.terminate(), 0)
        self.assertEqual(waiter.get(), (503, '{"error":"cancelled"}'))
        eventually(lambda: len(self.nodes("locks")) == 1, of="its node is gone")
        self.assertFalse(first.done())


if __name__ == "__main__":
    main()
