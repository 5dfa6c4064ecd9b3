#!/usr/bin/python3
"""Draws the pictures of the guide: pictures.py [--check] DIR. With --check it only says whether they are as drawn here.

They are drawn for light and dark, as the reader's system prefers.
"""

import html
import sys
from pathlib import Path

STYLE = """
  text { font: 14px system-ui, 'DejaVu Sans', sans-serif; fill: #263238; }
  .mono { font-family: ui-monospace, 'DejaVu Sans Mono', monospace; font-size: 13px; }
  .small { font-size: 12px; fill: #607d8b; }
  .strong { font-weight: 600; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .box { fill: #eceff1; stroke: #90a4ae; stroke-width: 1.2; }
  .holds { fill: #c8e6c9; stroke: #43a047; stroke-width: 1.6; }
  .waits { fill: #fff3cd; stroke: #e0a100; stroke-width: 1.2; }
  .bad { fill: #ffcdd2; stroke: #e53935; stroke-width: 1.4; }
  .gone { fill: none; stroke: #b0bec5; stroke-width: 1.2; stroke-dasharray: 4 4; }
  .line { fill: none; stroke: #90a4ae; stroke-width: 1.2; }
  .watch { fill: none; stroke: #1e88e5; stroke-width: 1.6; marker-end: url(#head); }
  .arrow { fill: none; stroke: #607d8b; stroke-width: 1.4; marker-end: url(#grey); }
  .redarrow { fill: none; stroke: #e53935; stroke-width: 1.4; marker-end: url(#red); }
  .blue { fill: #1e88e5; }
  .red { fill: #e53935; }
  .grey { fill: #607d8b; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e8ec; }
    .small { fill: #9fb0bb; }
    .box { fill: #37414a; stroke: #78909c; }
    .holds { fill: #1f4d2b; stroke: #66bb6a; }
    .waits { fill: #4d4016; stroke: #ffca28; }
    .bad { fill: #5a2326; stroke: #ef5350; }
    .gone { stroke: #607d8b; }
    .line { stroke: #78909c; }
    .watch { stroke: #64b5f6; }
    .blue { fill: #64b5f6; }
    .red { fill: #ef5350; }
    .redarrow { stroke: #ef5350; }
    .arrow { stroke: #9fb0bb; }
    .grey { fill: #9fb0bb; }
  }
"""


def head(name, style):
    return (f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path class="{style}" d="M0 0 10 5 0 10z"/></marker>')


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">', f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
            "<defs>" + head("head", "blue") + head("grey", "grey") + head("red", "red") + "</defs>"]

    def text(self, x, y, text, style=""):
        self.parts.append(f'<text x="{x}" y="{y}" class="{style}">{html.escape(text)}</text>')

    def box(self, x, y, width, height, style="box"):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{style}"/>')

    def path(self, d, style="line"):
        self.parts.append(f'<path d="{d}" class="{style}"/>')

    def node(self, x, y, width, name, who, style):
        """A node, and whose it is."""
        self.box(x, y, width, 44, style)
        self.text(x + width / 2, y + 19, name, "mono middle")
        self.text(x + width / 2, y + 36, who, "small middle")

    def __str__(self):
        return "\n".join([*self.parts, "</svg>", ""])


def tree(p, x, y, width, path, children):
    """A directory, and lines to the middles of its children."""
    p.box(x, y, width, 30)
    p.text(x + width / 2, y + 20, path, "mono middle")
    for child_x, child_y in children:
        middle = y + 30 + (child_y - y - 30) / 2
        p.path(f"M{x + width / 2} {y + 30} V{middle} H{child_x} V{child_y}")


def lock_queue():
    p = Picture(680, 206, "Three contenders of a lock: each watches the node in front of its own, and no other.")
    tree(p, 250, 10, 180, "/locks/orders", [(110, 84), (340, 84), (570, 84)])
    p.node(20, 84, 180, "…-lock-0000000007", "held by A", "holds")
    p.node(250, 84, 180, "…-lock-0000000008", "B waits", "waits")
    p.node(480, 84, 180, "…-lock-0000000009", "C waits", "waits")
    p.path("M340 128 V152 H114 V131", "watch")
    p.path("M570 128 V152 H344 V131", "watch")
    p.text(225, 172, "B watches A's node", "small middle")
    p.text(458, 172, "C watches B's node", "small middle")
    p.text(340, 198, "Each node is ephemeral: the servers remove it when the session of its creator ends.",
           "small middle")
    return p


def hand_over():
    p = Picture(680, 210, "A releases: its node is removed, B is told, and no other waiter is woken.")
    rows = [("1", "A removes its node", [("gone", "A released"), ("waits", "B waits"), ("waits", "C waits")]),
            ("2", "the watch tells B, and only B", [("none", ""), ("holds", "held by B"), ("waits", "C waits")]),
            ("3", "B's session ends: its node goes by itself", [("none", ""), ("gone", "B is gone"),
                                                             ("holds", "held by C")])]
    for i, (number, what, nodes) in enumerate(rows):
        y = 10 + 66 * i
        p.text(12, y + 27, number, "strong")
        p.text(34, y + 27, what)
        for j, (style, who) in enumerate(nodes):
            if style != "none":
                p.node(330 + 116 * j, y, 104, "…" + str(7 + j), who, style)
    return p


def readers_and_writers():
    p = Picture(680, 206, "Readers between two writers share the lock; a reader behind a writer waits for it.")
    tree(p, 250, 10, 180, "/locks/prices", [(84, 84), (212, 84), (340, 84), (468, 84), (596, 84)])
    for i, (name, who, style) in enumerate([("READ 12", "holds", "holds"), ("READ 13", "holds", "holds"),
                                            ("WRIT 14", "waits", "waits"), ("READ 15", "waits", "waits"),
                                            ("READ 16", "waits", "waits")]):
        p.node(28 + 128 * i, 84, 112, name, who, style)
    p.path("M330 128 V150 H216 V131", "watch")
    p.path("M468 128 V150 H352 V131", "watch")
    p.path("M596 128 V162 H340 V131", "watch")
    p.text(340, 192, "A writer waits for all nodes in front of its own; a reader for the last writer in front of it.",
           "small middle")
    return p


def axis(p, y, left, right, label):
    p.path(f"M{left} {y} H{right}", "arrow")
    p.text(right, y + 18, label, "small end")


def lease():
    p = Picture(680, 250, "The lease ends at the client before the session ends at the servers.")
    p.text(12, 60, "client", "strong")
    p.text(12, 150, "servers", "strong")
    p.box(90, 40, 330, 30, "holds")
    p.text(255, 60, "held() is true", "middle")
    p.box(420, 40, 240, 30, "bad")
    p.text(540, 60, "false; the body is cancelled", "middle")
    p.box(90, 130, 440, 30, "box")
    p.text(310, 150, "the session lives: no other client gets the lock", "middle")
    p.box(530, 130, 130, 30, "waits")
    p.text(595, 150, "the next in line", "middle")
    p.path("M120 72 V128", "watch")
    p.path("M200 72 V128", "watch")
    p.text(128, 104, "heartbeat", "small")
    p.text(208, 104, "the last one that arrives", "small")
    p.path("M420 20 V126", "line")
    p.path("M530 110 V214", "line")
    p.text(416, 28, "lease ends", "small end")
    p.text(526, 206, "session timeout", "small end")
    axis(p, 226, 90, 660, "time")
    return p


def fencing():
    p = Picture(680, 262, "A paused holder writes late, with a token that is too small, and is refused.")
    for y, name in ((44, "A"), (124, "B"), (204, "database")):
        p.text(12, y + 20, name, "strong")
    p.box(90, 44, 130, 30, "holds")
    p.text(155, 64, "holds, token 33", "middle")
    p.box(220, 44, 290, 30, "gone")
    p.text(365, 64, "paused: knows of nothing", "middle")
    p.box(510, 44, 100, 30, "bad")
    p.text(560, 64, "writes", "middle")
    p.box(310, 124, 200, 30, "holds")
    p.text(410, 144, "holds, token 34", "middle")
    p.box(90, 204, 290, 30, "box")
    p.text(235, 224, "has seen 33", "middle")
    p.box(380, 204, 280, 30, "box")
    p.text(520, 224, "has seen 34", "middle")
    p.path("M130 76 V202", "arrow")
    p.text(138, 104, "reads with 33", "small")
    p.path("M380 156 V202", "arrow")
    p.text(372, 184, "reads with 34", "small end")
    p.path("M560 76 V202", "redarrow")
    p.text(568, 184, "33 < 34: refused", "small")
    p.path("M310 20 V44 M310 74 V124", "line")
    p.text(304, 28, "A's session expires", "small end")
    return p


def concepts():
    p = Picture(680, 296, "One client: its connections, its two sessions, and a lock that ends with the first session.")
    for y, name in ((14, "client"), (54, "connection"), (94, "session"), (134, "lock"), (184, "another client"),
                    (232, "group, lead()")):
        p.text(12, y + 20, name, "strong")
    p.box(130, 14, 530, 30)
    p.text(395, 34, "until close(), or until its last handle and guard are gone", "middle")
    for x, width in ((130, 110), (270, 110), (560, 100)):
        p.box(x, 54, width, 30)
    p.text(255, 74, "cut", "small middle")
    p.text(470, 74, "no server can be reached", "small middle")
    p.box(130, 94, 370, 30, "holds")
    p.text(315, 114, "one session, over several connections", "middle")
    p.box(560, 94, 100, 30, "holds")
    p.text(610, 114, "the next", "middle")
    p.box(170, 134, 270, 30, "holds")
    p.text(305, 154, "a guard, token 33", "middle")
    p.box(440, 134, 60, 30, "gone")
    p.text(470, 154, "its node", "small middle")
    p.box(500, 184, 160, 30, "holds")
    p.text(580, 204, "a guard, token 34", "middle")
    p.box(130, 232, 370, 30, "waits")
    p.text(315, 252, "a member, a candidate", "middle")
    p.box(560, 232, 100, 30, "waits")
    p.text(610, 252, "again", "middle")
    p.path("M440 126 V180", "line")
    p.text(436, 180, "lease ends", "small end")
    p.path("M500 88 V226", "line")
    p.text(496, 225, "session timeout", "small end")
    axis(p, 270, 130, 660, "time")
    return p


PICTURES = {"concepts": concepts, "lock-queue": lock_queue, "hand-over": hand_over,
            "readers-and-writers": readers_and_writers, "lease": lease, "fencing": fencing}


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__)
    directory = Path(arguments[-1])
    stale = 0
    for name, draw in PICTURES.items():
        file, now = directory / f"{name}.svg", str(draw())
        if not check:
            file.write_text(now, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != now:
            print(f"{file} is not what scripts/docs/pictures.py draws: run it", file=sys.stderr)
            stale += 1
    sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
