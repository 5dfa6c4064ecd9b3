#!/usr/bin/python3
"""Measures, and draws what docs/performance.md shows.

    plots.py measure BENCHES HOST:PORT DATA [PART...]   runs the benchmarks in BENCHES, build/release/tests/bench; all,
                                                        or those of lock, cache, get, election; DATA is JSON
    plots.py draw DATA DIR                              DIR gets bench-*.svg; needs python3-matplotlib

The pictures are drawn for light and dark, as the reader's system prefers.
"""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

LIBRARIES = {"zkasio": "zkasio", "curator": "Curator", "kazoo": "kazoo", "gozk": "go-zk", "raw local0": "C, by hand",
             "raw": "C, by hand"}
OURS, OTHERS, TEXT, LINE = "#00897b", "#90a4ae", "#263238", "#b0bec5"


# ------------------------------------------------------------------------------------------------------ to measure

def run(*command):
    print("   " + " ".join(map(str, command)), file=sys.stderr)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    print(done.stdout, file=sys.stderr)
    return done.stdout


def lock_tables(text):
    """{title: {library: {column: median}}} of zkasio_bench_lock."""
    tables, columns, table = {}, [], {}
    for line in text.splitlines():
        titled = re.match(r"(\S.*), \d+ rounds", line)
        if titled:
            table = tables.setdefault(titled[1], {})
            columns = []
        elif line.strip().startswith("round"):
            columns = re.split(r"\s{2,}", line.strip())[1:]
        elif re.match(r"  \S.* median ", line):
            name, numbers = re.match(r"  (\S.*?)\s+median\s+(.*)", line).groups()
            table[name] = dict(zip(columns, map(float, numbers.split())))
    return tables


def get_table(text):
    """{depth: {library: CPU us per get}} of zkasio_bench_get."""
    return {depth: {"raw": float(raw), "zkasio": float(any_executor), "zkasio, on the client's strand": float(strand)}
            for depth, raw, any_executor, strand in re.findall(
                r"^ *(\d+) +([\d.]+) us +\d+/s +([\d.]+) us = .*?/s +([\d.]+) us", text, re.MULTILINE)}


def election_table(text):
    """{what: {library: median in ms}} of zkasio_bench_election: the last line of each library and what."""
    table = {}
    for library, what, median in re.findall(r"^  (\w+) +(\w+) +\d+ times .*? median +(-?[\d.]+)", text, re.MULTILINE):
        table.setdefault(what, {})[library] = float(median)
    return table


def cache_table(text):
    """{library: {column: median}} of zkasio_bench_cache."""
    names = {"zkasio cache": "zkasio", "curator cache": "Curator's TreeCache",
             "curator curatorcache": "Curator's CuratorCache", "kazoo cache": "kazoo's TreeCache"}
    columns, rounds = ("nodes", "ready s", "cpu s", "heap B"), {}
    for library, kind, *numbers in re.findall(
            r"^  (\w+) +(\w+) +(\d+) nodes  ready +([\d.]+) s  cpu +([\d.]+) s .*? heap +(\d+)", text, re.MULTILINE):
        rounds.setdefault(names[f"{library} {kind}"], []).append(list(map(float, numbers)))
    return {name: dict(zip(columns, map(statistics.median, zip(*all_rounds)))) for name, all_rounds in rounds.items()}


MEASUREMENTS = {
    "lock": (lock_tables, "zkasio_bench_lock", [3, "limit=30", "peers", "cycle", 1000]),
    "cache": (cache_table, "zkasio_bench_cache", [16000, "peers"]),
    "get": (get_table, "zkasio_bench_get", [15, 0.7]),
    "election": (election_table, "zkasio_bench_election", [15, "peers"]),
}


def measure(benches, server, data, *parts):
    data = Path(data)
    figures = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    for part in parts or MEASUREMENTS:
        read, program, arguments = MEASUREMENTS[part]
        figures[part] = read(run(Path(benches) / program, server, *arguments))
        data.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


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


def figure(directory, name, *panels):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "zkasio", "font.family": "DejaVu Sans"})
    rows = sum(max(2, len(values)) for values, _, _ in panels)
    drawn, all_axes = pyplot.subplots(len(panels), 1, figsize=(7, 0.36 * rows + 0.6 * len(panels)), squeeze=False,
                                      gridspec_kw={"height_ratios": [max(2, len(v)) for v, _, _ in panels]})
    for axes, (values, title, unit) in zip(all_axes[:, 0], panels):
        bars(axes, values, title, unit)
    drawn.tight_layout(h_pad=1.4)
    file = Path(directory) / f"bench-{name}.svg"
    drawn.savefig(file, transparent=True, metadata={"Date": None, "Creator": None})
    text = file.read_text(encoding="utf-8")
    dark = ("<style>@media (prefers-color-scheme: dark) { text { fill: #e3e8ec !important } "
            f'path[style*="{OURS}"] {{ fill: #4db6ac !important }} '
            f'path[style*="{OTHERS}"] {{ fill: #78909c !important }} }}</style>')
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    text = re.sub(r"(<svg [^>]*>)", lambda m: m[1] + "\n " + dark, text, count=1)
    file.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), encoding="utf-8")


def column(table, name, names):
    """One column, by the names that readers know. Of several ways of ours, the plain one."""
    return {names[library]: row[name] for library, row in table.items() if library in names and row.get(name)}


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
    figure(directory, "get", *(({"C, by hand": row["raw"], **{n: v for n, v in row.items() if n != "raw"}},
                                f"processor time of a get, {depth} under way", "µs") for depth, row in table.items()))


def draw_election(table, directory):
    figure(directory, "election", ({LIBRARIES[n]: v for n, v in table["resigns"].items()},
                                   "from a resignation to the next leader", "ms"))


def draw_cache(table, directory):
    nodes = next(iter(table.values()))["nodes"]
    figure(directory, "cache",
           ({n: row["cpu s"] for n, row in table.items()}, f"processor time until {nodes:,.0f} nodes are there", "s"),
           ({n: row["heap B"] for n, row in table.items()}, "memory for each node, beyond its path and data", "B"))


def draw(data, directory):
    drawings = {"lock": draw_lock, "get": draw_get, "election": draw_election, "cache": draw_cache}
    for part, figures in json.loads(Path(data).read_text(encoding="utf-8")).items():
        drawings[part](figures, directory)


def main(arguments):
    if arguments[:1] == ["measure"] and len(arguments) >= 4 and MEASUREMENTS.keys() >= set(arguments[4:]):
        measure(*arguments[1:])
    elif arguments[:1] == ["draw"] and len(arguments) == 3:
        draw(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
