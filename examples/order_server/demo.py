#!/usr/bin/env python3
"""Two order servers, customers, and a page that shows both: what scripts/demo.sh --page runs, with a ZooKeeper.

An instance that is killed, by its button say, is started again, as a service manager would. All that was started ends
with this program, by its process id.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import tempfile

PATIENCE_MS = 20_000  # of a customer in a queue


async def ask(port, method, path, body=None, limit=3):
    """Status and body of an answer; (None, None) where there is none within so many seconds."""
    try:
        return await asyncio.wait_for(answer(port, method, path, body), limit)
    except asyncio.TimeoutError:
        return None, None


async def answer(port, method, path, body):
    data = b"" if body is None else json.dumps(body).encode()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return None, None
    try:
        head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                f"Content-Length: {len(data)}\r\n\r\n")
        writer.write(head.encode() + data)
        status, _, text = (await reader.read()).partition(b"\r\n\r\n")
        return int(status.split()[1]), text.decode()
    except (OSError, IndexError, ValueError):
        return None, None
    finally:
        writer.close()


class Instance:
    def __init__(self, options, name, port, store):
        self.name, self.port = name, port
        self.command = [options.server, "--connect", options.connect, "--root", options.root, "--store", store,
                        "--name", name, "--port", str(port), "--session-timeout", str(options.session_timeout),
                        "--bank-time", "1200", "--settle-every", "4000", "--demo"]
        self.process = None
        self.told_to_end = False

    async def keep_running(self):
        failures = 0
        while True:
            self.process = await asyncio.create_subprocess_exec(*self.command)
            status = await self.process.wait()
            failures = failures + 1 if status > 0 else 0
            if failures == 3:
                raise RuntimeError(f"{self.name} does not start")
            await asyncio.sleep(3)

    def end(self):
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)  # if it was paused
            self.process.terminate()
            self.told_to_end = True

    async def ended(self):
        if not self.told_to_end:
            return
        try:
            status = await asyncio.wait_for(self.process.wait(), 20)
        except asyncio.TimeoutError:
            self.process.kill()
            status = await self.process.wait()
        if status != 0:
            raise RuntimeError(f"{self.name} has not ended in order: {status}")


class Balancer:
    """Sends customers to instances that are ready: not to one that is paused."""

    def __init__(self, ports):
        self.ports, self.ready = ports, set(ports)

    def choose(self):
        return random.choice(sorted(self.ready) or self.ports)

    async def look_after(self, port):
        while True:
            status, _ = await ask(port, "GET", "/readyz", limit=1)
            (self.ready.add if status == 200 else self.ready.discard)(port)
            await asyncio.sleep(0.3)


async def guest(order, balancer):
    """Whoever hears nothing asks another instance; a queue moves at the latest when a session has timed out."""
    status = None
    while status is None:
        pay = f"/orders/{order}/pay?deadline_ms={PATIENCE_MS}"
        status, _ = await ask(balancer.choose(), "POST", pay, limit=8)
        if status is None:
            await asyncio.sleep(0.3)


async def table(name, guests, pause, balancer):
    """Orders, one after another, and for each several who would all like to pay it."""
    for number in itertools.count(1):
        order = f"{name}-{number}"
        item = {"item": random.choice(["tea", "cake"])}
        status, _ = await ask(balancer.choose(), "PUT", f"/orders/{order}", item)
        if status == 201:
            await asyncio.gather(*(guest(order, balancer) for _ in range(random.randint(1, guests))))
        await asyncio.sleep(random.uniform(0.2, 1) * pause)


async def reader(balancer):
    while True:
        await ask(balancer.choose(), "GET", "/orders")
        await asyncio.sleep(0.5)


async def run(options):
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="zkasio-orders.") as directory:
        store = os.path.join(directory, "orders.sqlite")
        instances = [Instance(options, "ab"[i], options.port + i, store) for i in range(2)]
        ports = [i.port for i in instances]
        work = [i.keep_running() for i in instances]
        balancer = Balancer(ports)
        work += [balancer.look_after(port) for port in ports]
        work += [table(f"table{t}", 14, 2, balancer) for t in range(1, 5)]
        work += [table("banquet", 120, 8, balancer), reader(balancer)]
        tasks = [asyncio.create_task(w) for w in work]
        tasks.append(asyncio.create_task(stop.wait()))
        try:
            while (await ask(ports[0], "GET", "/readyz"))[0] != 200 and not any(t.done() for t in tasks):
                await asyncio.sleep(0.1)
            print(f"\n   http://127.0.0.1:{ports[0]}/   (Ctrl-C ends everything)\n", flush=True)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # throws what has failed
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for i in instances:
                i.end()
            await asyncio.gather(*(i.ended() for i in instances))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="the program order_server")
    parser.add_argument("--connect", required=True, help="ZooKeeper's connect string")
    parser.add_argument("--root", default="/order-server-demo")
    parser.add_argument("--session-timeout", type=int, default=3000, help="of the instances, in milliseconds")
    parser.add_argument("--port", type=int, default=8080, help="of the first instance; the second has the next")
    try:
        asyncio.run(run(parser.parse_args()))
    except RuntimeError as e:
        sys.exit(f"error: {e}")


if __name__ == "__main__":
    main()
