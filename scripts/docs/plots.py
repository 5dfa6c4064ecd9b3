#!/usr/bin/python3
"""Measures, and draws what docs/performance.md and docs/cost.md show. scripts/bench.sh runs it.

    plots.py measure [--quick] BENCHES HOST:PORT DATA [PART...]   runs the benchmarks in BENCHES, prints the tables of
                                                                  targets.py, and writes the figures to DATA, as JSON
    plots.py parts                                                prints the names of the parts
    plots.py draw DATA DIR                                        DIR gets bench-*.svg; needs python3-matplotlib

The pictures are drawn for light and dark, as the reader's system prefers.
"""

import json
import re
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import targets

LIBRARIES = {"zkasio": "zkasio", "curator": "Curator", "kazoo": "kazoo", "gozk": "go-zk", "raw local0": "C, by hand",
             "raw": "C, by hand"}
OURS, OTHERS, TEXT, LINE = "#00897b", "#90a4ae", "#263238", "#b0bec5"


# ------------------------------------------------------------------------------------------------------ to measure

def figures_of(text):
    """{row: {column: [one for each round]}}, as deep as names are, of all lines "figure table | row | column  number"."""
    tree = {}
    for name, value in re.findall(r"^figure (.*)  (\S+)$", text, re.MULTILINE):
        *above, last = name.split(" | ")
        branch = tree
        for key in above:
            branch = branch.setdefault(key, {})
        branch.setdefault(last, []).append(float(value))
    return tree


SERVER = object()  # stands for the server's address
# What each part runs, in full and with --quick.
MEASUREMENTS = {
    "lock": ("zkasio_bench_lock",
             [SERVER, 5, "limit=60", 10000, 100000, "1000s5", "peers", 1000, "cycle", "4x25", "handoff"],
             [SERVER, 3, "limit=30", 10000, "cycle", "handoff", "peers", 1000, "4x25"]),
    "cohort": ("zkasio_bench_cohort", [SERVER], [SERVER]),
    "get": ("zkasio_bench_get", [SERVER, 15, 0.7], [SERVER, 3, 0.3]),
    "cache": ("zkasio_bench_cache", [SERVER, 64000, "peers"], [SERVER, 16000, "peers"]),
    "caches": ("zkasio_bench_caches", [SERVER, 64000, "peers"], [SERVER, 16000, "peers"]),
    "election": ("zkasio_bench_election", [SERVER, 200, "peers"], [SERVER, 15, "peers"]),
    "pick": ("zkasio_bench_pick", [SERVER], [SERVER]),
    "members": ("zkasio_bench_members", [SERVER, 10000, 5], [SERVER, 10000, 2]),
    "bulk": ("zkasio_bench_bulk", [SERVER, 5, 20000], [SERVER, 3, 20000]),
    "structures": ("zkasio_bench_structures", [SERVER, "peers"], [SERVER]),
    "cuts": ("zkasio_bench_cuts", [SERVER, "peers"], [SERVER]),
    "fail-over": ("zkasio_bench_failover", [5], [1]),
    "scale": ("zkasio_bench_scale", [1000], [100]),  # in virtual time, without a server
}


def measure(benches, server, data, *parts, quick=False):
    """The figures of a part replace those of its last run. Exits with 1 after all parts if a benchmark has failed."""
    data, failed = Path(data), []
    figures = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    for part in parts or MEASUREMENTS:
        program, in_full, in_short = MEASUREMENTS[part]
        command = [Path(benches) / program, *(in_short if quick else in_full)]
        command = [str(server if word is SERVER else word) for word in command]
        print("   " + " ".join(command), file=sys.stderr)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(re.sub(r"^figure .*\n", "", done.stdout, flags=re.MULTILINE), file=sys.stderr)
        if done.returncode != 0 or not figures_of(done.stdout):
            print(f"error: {program} has failed ({done.returncode})", file=sys.stderr)
            failed.append(part)
            continue
        figures[part] = figures_of(done.stdout)
        data.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(targets.markdown(part, targets.table(part, figures[part])) + "\n", flush=True)
    if failed:
        sys.exit(1)


# --------------------------------------------------------------------------------------------------------- to draw

def bars(axes, values, title, unit):
    """Horizontal bars, the shortest on top; on a logarithmic scale where they differ much."""
    values = sorted(values.items(), key=lambda v: v[1], reverse=True)
    numbers = [v for _, v in values]
    axes.barh([n for n, _ in values], numbers, color=[OURS if n.startswith("zkasio") else OTHERS for n, _ in values],
              height=0.62)
    if min(numbers) > 0 and max(numbers) > 12 * min(numbers):
        axes.set_xscale("log")
        axes.set_xlim(min(numbers) / 2.5, max(numbers) * 3)
        title += " (logarithmic)"
    else:
        axes.set_xlim(0, max(numbers) * 1.22)
    axes.set_title(title, loc="left", fontsize=11, color=TEXT)
    for place, (_, number) in enumerate(values):
        text = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
        axes.annotate(f"{text} {unit}", (number, place), xytext=(4, 0), textcoords="offset points", va="center",
                      fontsize=10, color=TEXT)
    axes.tick_params(colors=TEXT, labelsize=10, length=0)
    axes.set_xticks([], minor=True)
    axes.set_xticks([])
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(LINE)


def prepared_pyplot():
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "zkasio", "font.family": "DejaVu Sans"})
    return pyplot


def figure(directory, name, *panels):
    pyplot = prepared_pyplot()
    rows = sum(max(2, len(values)) for values, _, _ in panels)
    drawn, all_axes = pyplot.subplots(len(panels), 1, figsize=(7, 0.36 * rows + 0.6 * len(panels)), squeeze=False,
                                      gridspec_kw={"height_ratios": [max(2, len(v)) for v, _, _ in panels]})
    for axes, (values, title, unit) in zip(all_axes[:, 0], panels):
        bars(axes, values, title, unit)
    drawn.tight_layout(h_pad=1.4)
    save(drawn, directory, name)


def curves(directory, name, table, column):
    """A small panel for each row, on logarithmic scales: the column for each number of users."""
    pyplot = prepared_pyplot()
    drawn, all_axes = pyplot.subplots(-(-len(table) // 3), 3, figsize=(8, 1.75 * -(-len(table) // 3)), squeeze=False)
    for axes in all_axes.flat[len(table):]:
        axes.set_visible(False)
    for axes, (row, by_users) in zip(all_axes.flat, table.items()):
        users = sorted(by_users, key=int)
        values = [middle(by_users[n][column]) for n in users]
        axes.plot([int(n) for n in users], values, color=OURS, marker="o", markersize=3.5, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 4, max(values) * 6)
        axes.set_xlim(int(users[0]) / 1.6, int(users[-1]) * 1.6)
        axes.set_xticks([int(n) for n in users if n.startswith("1")], [n for n in users if n.startswith("1")])
        axes.set_xticks([], minor=True)
        axes.set_yticks([])
        axes.set_yticks([], minor=True)
        for n, value in zip(users, values):
            if n.startswith("1"):
                text = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
                axes.annotate(text, (int(n), value), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8,
                              color=TEXT)
        axes.set_title(row.replace(": ", ":\n"), loc="left", fontsize=8.5, color=TEXT)
        axes.tick_params(colors=TEXT, labelsize=8, length=0)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(LINE)
    drawn.tight_layout(h_pad=1.2, w_pad=1.2)
    save(drawn, directory, name)


def save(drawn, directory, name):
    file = Path(directory) / f"bench-{name}.svg"
    drawn.savefig(file, transparent=True, metadata={"Date": None, "Creator": None})
    text = file.read_text(encoding="utf-8")
    dark = ("<style>@media (prefers-color-scheme: dark) { text { fill: #e3e8ec !important } "
            f'path[style*="{OURS}"] {{ fill: #4db6ac !important }} '
            f'path[style*="fill: none; stroke: {OURS}"] {{ fill: none !important; stroke: #4db6ac !important }} '
            f'path[style*="{OTHERS}"] {{ fill: #78909c !important }} }}</style>')
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    text = re.sub(r"(<svg [^>]*>)", lambda m: m[1] + "\n " + dark, text, count=1)
    file.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), encoding="utf-8")


def column(table, name, names):
    """One column, by the names that readers know. Of several ways of ours, the plain one."""
    return {names[library]: middle(row[name]) for library, row in table.items() if library in names and row.get(name)}


def middle(rounds):
    return statistics.median(rounds)


def draw_lock(tables, directory):
    thousand = tables["1000 waiters in one process, per waiter"]
    figure(directory, "queue",
           (column(thousand, "CPU us", LIBRARIES), "processor time of the client for each waiter", "µs"),
           (column(thousand, "bytes rcvd", LIBRARIES), "bytes received for each waiter", "B"),
           (column(thousand, "requests", LIBRARIES), "requests for each waiter", ""))
    cycle = tables["uncontended acquire + release, per cycle"]
    names = {**LIBRARIES, "zkasio, awaited": "zkasio", "raw, awaited": "C, by hand"}
    figure(directory, "cycle",
           (column(cycle, "CPU us", names), "processor time of the client for acquire and release", "µs"))


def draw_get(table, directory):
    figure(directory, "get", *(({"C, by hand": middle(row["raw"]), **{n: middle(v) for n, v in row.items() if n != "raw"}},
                                f"processor time of a get, {depth} under way", "µs")
                               for depth, row in table["CPU us"].items() if depth.isdigit()))


def draw_election(table, directory):
    figure(directory, "election", ({LIBRARIES[n]: middle(v) for n, v in table["resigns"].items()},
                                   "from a resignation to the next leader", "ms"))


def draw_cache(table, directory):
    table = {name: row for name, row in table.items() if "nodes" in row}
    nodes = middle(table["zkasio"]["nodes"])
    figure(directory, "cache",
           ({n: middle(row["cpu s"]) for n, row in table.items()}, f"processor time until {nodes:,.0f} nodes are there", "s"),
           ({n: middle(row["heap B"]) for n, row in table.items()}, "memory for a node, beyond path and data", "B"))


def draw_scale(table, directory):
    curves(directory, "scale-requests", table, "requests")
    curves(directory, "scale-bytes", table, "bytes")
    curves(directory, "scale-time", table, "s")
    curves(directory, "scale-busiest", table, "busiest s")


def draw(data, directory):
    drawings = {"lock": draw_lock, "get": draw_get, "election": draw_election, "cache": draw_cache, "scale": draw_scale}
    for part, figures in json.loads(Path(data).read_text(encoding="utf-8")).items():
        if part in drawings:
            drawings[part](figures, directory)


def main(arguments):
    quick = "--quick" in arguments
    arguments = [a for a in arguments if a != "--quick"]
    if arguments[:1] == ["measure"] and len(arguments) >= 4 and MEASUREMENTS.keys() >= set(arguments[4:]):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the benchmark ends, too
        measure(*arguments[1:], quick=quick)
    elif arguments == ["parts"]:
        print(" ".join(MEASUREMENTS))
    elif arguments[:1] == ["draw"] and len(arguments) == 3:
        draw(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
