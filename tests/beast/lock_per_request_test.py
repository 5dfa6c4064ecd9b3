"""examples/beast/lock_per_request, the server on Boost.Beast, with clients that wait and clients that hang up."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import uuid

SERVERS = os.environ.get("ZKASIO_TEST_SERVERS", "")
PATIENCE = 60  # seconds


class LockPerRequest(unittest.TestCase):
    def start(self, seconds, servers=SERVERS):
        self.server = subprocess.Popen([os.environ["LOCK_PER_REQUEST"], servers, "0", str(seconds)],
                                       stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.server.stdout.readline().strip())[1])
        self.target = "/printers/" + uuid.uuid4().hex

    def tearDown(self):
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(PATIENCE), 0)
        self.server.stdout.close()

    def ask(self, method, target=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, target or self.target)
        answer = connection.getresponse()
        text = answer.read().decode().strip()
        connection.close()
        return answer.status, text

    def until_there_are(self, contenders):
        end = time.monotonic() + PATIENCE
        while self.ask("GET") != (200, str(contenders)):
            self.assertLess(time.monotonic(), end)

    def clients_that_wait(self, number):
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(number)]
        for client in clients:
            client.sendall(f"POST {self.target} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        self.until_there_are(number)
        return clients

    def test_requests_get_the_lock_one_after_another(self):
        self.start(seconds=0)
        answers = []
        clients = [threading.Thread(target=lambda: answers.append(self.ask("POST"))) for _ in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual([status for status, _ in answers], [200] * 4)
        tokens = [int(re.fullmatch(r"printed under token (\d+)", text)[1]) for _, text in answers]
        self.assertEqual(len(set(tokens)), 4)
        self.assertEqual(self.ask("GET"), (200, "0"))

    def test_a_client_that_hangs_up_leaves_the_queue(self):
        self.start(seconds=10 * PATIENCE)
        clients = self.clients_that_wait(8)
        for client in clients[3:]:
            client.close()
        self.until_there_are(3)
        for client in clients[:3]:  # the holder, too
            client.close()
        self.until_there_are(0)

    def test_without_servers_a_request_fails(self):
        self.start(seconds=0, servers="127.0.0.1:1")
        status, text = self.ask("POST")
        self.assertEqual(status, 503)
        self.assertIn("not connected", text)

    def test_it_ends_while_clients_wait(self):
        self.start(seconds=10 * PATIENCE)
        clients = self.clients_that_wait(3)
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(PATIENCE), 0)  # and only then, the clients hang up
        for client in clients:
            client.close()

    def test_other_requests_are_refused(self):
        self.start(seconds=0)
        self.assertEqual(self.ask("GET", "/")[0], 404)
        self.assertEqual(self.ask("POST", "/printers/..")[0], 404)
        self.assertEqual(self.ask("DELETE")[0], 405)


if __name__ == "__main__":
    if not SERVERS:
        print("SKIPPED: no ZKASIO_TEST_SERVERS")
        sys.exit(77)
    unittest.main(verbosity=2)
