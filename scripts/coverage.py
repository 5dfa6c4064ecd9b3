"""Prints what scripts/coverage.sh has measured: coverage.py LIB [--missing=ROOM] [--require=PERCENT] TITLE=JSON..."""
import collections
import functools
import json
import pathlib
import sys

LEFT_OUT = {"testing"}  # a kit for tests


@functools.cache
def below(name, lib):
    """The path of a source below lib; None: it is elsewhere."""
    path = pathlib.Path(name)
    return path.relative_to(lib) if path.is_relative_to(lib) else None


def room_of(file):
    parts = file.parts
    if len(parts) == 1:
        return "values"
    return "/".join(parts[:2]) if parts[0] == "detail" else parts[0]


def branches_of(report, lib):
    """{file: {place: [how often true, how often false]}}, the instances of a template together."""
    files = collections.defaultdict(dict)
    for function in report["data"][0]["functions"]:
        names = [below(n, lib) for n in function["filenames"]]
        for line, column, end_line, end_column, yes, no, file_id, _, kind, *_ in (
                (*b, 0) for b in function.get("branches", [])):
            name = names[file_id]
            if name is None:
                continue
            place = (line, column, end_line, end_column)
            sums = files[name].setdefault(place, [0, 0])
            sums[0] += yes
            sums[1] += no
    return files


def functions_of(report, lib):
    """{(file, line): how often called}"""
    calls = collections.Counter()
    for function in report["data"][0]["functions"]:
        name = below(function["filenames"][0], lib)
        if name is not None:
            calls[name, function["regions"][0][0]] += function["count"]
    return calls


def main():
    lib = pathlib.Path(sys.argv[1]).resolve()
    missing = require = None
    reports = []
    for argument in sys.argv[2:]:
        if argument.startswith("--missing="):
            missing = argument.removeprefix("--missing=").strip("/")
        elif argument.startswith("--require="):
            require = float(argument.removeprefix("--require="))
        elif argument:
            title, file = argument.split("=", 1)
            reports.append((title, json.loads(pathlib.Path(file).read_text())))
    rooms = collections.defaultdict(dict)  # by room, then by report
    totals = []
    for title, report in reports:
        per_room = collections.defaultdict(lambda: [0, 0])
        for file, branches in branches_of(report, lib).items():
            room = room_of(file)
            if room in LEFT_OUT:
                continue
            for counts in branches.values():
                per_room[room][0] += sum(c > 0 for c in counts)
                per_room[room][1] += 2
        calls = functions_of(report, lib)
        taken, all_of = (sum(n[i] for n in per_room.values()) for i in (0, 1))
        uncalled = sorted((str(f), l) for (f, l), n in calls.items()
                          if n == 0 and room_of(f) not in LEFT_OUT)
        totals.append((title, taken, all_of, uncalled))
        for room, (some, every) in per_room.items():
            rooms[room][title] = (some, every)
    width = max(map(len, rooms))
    print(f"\n{'branches of':{width}}  " + "  ".join(f"{title:>28}" for title, *_ in totals))
    column = lambda a, b: f"{f'{a} of {b}':>18} {100 * a / b:7.1f} %" if b else " " * 28
    for room in sorted(rooms):
        print(f"{room:{width}}  " + "  ".join(column(*rooms[room].get(title, (0, 0))) for title, *_ in totals))
    print(f"{'all':{width}}  " + "  ".join(column(a, b) for _, a, b, _ in totals))
    title, taken, all_of, uncalled = totals[-1]
    print(f"\nfunctions that no test calls ({title}): {len(uncalled)}")
    for file, line in uncalled:
        print(f"  {file}:{line}")
    if missing:
        print(f"\nbranches of {missing} that no test takes ({title})")
        for file, branches in sorted(branches_of(reports[-1][1], lib).items()):
            if not str(file).startswith(missing) and room_of(file) != missing:
                continue
            for (line, column, *_), (yes, no) in sorted(branches.items()):
                if not yes or not no:
                    how = "never reached" if not yes and not no else "never true" if not yes else "never false"
                    print(f"  {file}:{line}:{column}: {how}")
    if require is not None and 100 * taken < require * all_of:
        sys.exit(f"error: {100 * taken / all_of:.1f} % of the branches are reached, and {require} % are wanted")


if __name__ == "__main__":
    main()
