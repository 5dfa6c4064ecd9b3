"""The mutants of tests/mutants: scripts/mutants.sh says what they are.

A broken source is compiled alone, from a copy, and linked in front of the library and with one test file, whose object is
compiled once. The library of a unity build keeps its own copy of the broken function, of which callers in the same unit
may have inlined a part: a mutant that survives so is tried again with the whole unit compiled.
"""
import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/test"
PATIENCE = 60  # seconds for a test that ends in a few; and as often what the unbroken one takes
TIMES = 5


class Broken(Exception):
    """The table, or the build, is wrong."""


class Compiler:
    """Compiles sources as CMake does, each only once."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.commands = json.loads((BUILD / "compile_commands.json").read_text())
        self.locks, self.guard = {}, threading.Lock()

    def flags(self, target):
        for entry in self.commands:
            if f"CMakeFiles/{target}.dir/" in entry["command"]:
                words, flags, skip = shlex.split(entry["command"]), [], False
                for word in words:
                    if skip:
                        skip = False
                    elif word in ("-o", "-MF", "-MT", "-c"):
                        skip = True
                    elif not word.startswith("-MD") and not word.endswith((".cpp", ".cxx")):
                        flags.append(word)
                return flags, entry["directory"]
        raise Broken(f"no target {target} in {BUILD}")

    def once(self, key):
        with self.guard:
            return self.locks.setdefault(key, threading.Lock())

    def compile(self, source, target, *, before=()):
        """The object of `source`, with the flags of `target`. `before`: directories to look for headers in first."""
        key = hashlib.sha1("|".join([str(source), target, *map(str, before)]).encode()).hexdigest()[:16]
        to = self.scratch / f"{pathlib.Path(source).stem}-{key}.o"
        with self.once(key):
            if not to.exists():
                flags, directory = self.flags(target)
                words = [flags[0]]
                if pathlib.Path(flags[0]).name == "ccache":
                    words.append(flags.pop(1))
                words += [f"-I{d}" for d in before] + flags[1:] + ["-w", "-c", str(source), "-o", str(to)]
                done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
                if done.returncode:
                    to.unlink(missing_ok=True)
                    raise Broken(f"{source} does not compile:\n{done.stderr[:2000]}")
        return to


def level_of(test):
    return pathlib.Path(test).parts[0]


def support_of(level):
    """What the tests of a level share, beside zkasio_test_support."""
    if level == "unit":
        return sorted((ROOT / "tests/unit/support").glob("*.cpp"))
    return [f for f in sorted((ROOT / "tests" / level).glob("*.cpp")) if not f.name.endswith("_test.cpp")]


def libraries(level):
    """The library behind the tests, and what they are linked with."""
    names = ["zkasio_test_support", "zkasio_testing_with_detail", "zkasio_discovery_with_detail", "zkasio"]
    if level == "tls":
        names[:0] = ["zkasio_tls_with_detail", "zkasio_sasl_with_detail", "zkasio_kerberos_with_detail"]
    # Not the copies that tests of installed libraries have made, which are deeper.
    found = [min(BUILD.rglob(f"lib{name}.a"), key=lambda p: len(p.parts), default=None) for name in names]
    if None in found:
        raise Broken(f"{names[found.index(None)]} is not built")
    return ["-Wl,--start-group", *map(str, found), "-Wl,--end-group", "-lzookeeper_st", "-lpthread", "-ldl",
            *(["-lssl", "-lcrypto", "-lgssapi_krb5"] if level == "tls" else [])]


class Suite:
    def __init__(self, scratch):
        self.scratch = scratch
        self.compiler = Compiler(scratch)
        self.guard = threading.Lock()
        self.alone = threading.Lock()  # for tests of TLS, whose attempts to connect have less than a second
        self.passing, self.passed = {}, {}  # a lock, and the seconds that the unbroken test takes, for each

    def link(self, level, objects, name):
        program = self.scratch / name
        # The first definition of a function counts: that of the broken source.
        words = ["c++", "-Wl,-z,muldefs", *map(str, objects), *libraries(level), "-o", str(program)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Broken(f"{name} does not link:\n{done.stderr[-2000:]}")
        return program

    def run(self, level, program, cases, limit):
        with self.alone if level == "tls" else contextlib.nullcontext():
            return self.run_now(program, cases, limit)

    def run_now(self, program, cases, limit):
        """How the tests of a program fail, or `cases` of them; an empty text if they pass."""
        environment = dict(os.environ, ZKASIO_SIM_SEEDS="50", ZKASIO_EXPLORE_SCHEDULES="300")
        try:
            done = subprocess.run([program, *cases, "-o", f"{program}.log"], capture_output=True, timeout=limit,
                                  cwd=self.scratch, env=environment)
        except subprocess.TimeoutExpired:
            return "hangs"
        finally:
            program.unlink()
        log = pathlib.Path(f"{program}.log")
        text = log.read_text(errors="replace") if log.exists() else ""
        log.unlink(missing_ok=True)
        if done.returncode == 0:
            if "No tests ran" in text or "All tests passed" not in text:
                raise Broken(f"{program}: no test has run")
            return ""
        return "fails" if done.returncode > 0 else "crashes"

    def objects_of(self, test, before=()):
        level = level_of(test)
        target = f"zkasio_{level}_tests"
        shared = [self.compiler.compile(f, target) for f in support_of(level)]
        return [self.compiler.compile(ROOT / "tests" / test, target, before=before), *shared]

    def require_passing(self, test, cases):
        """The limit for the broken ones, in seconds."""
        key = (test, *cases)
        with self.guard:
            lock = self.passing.setdefault(key, threading.Lock())
        with lock:
            if key not in self.passed:
                program = self.link(level_of(test), self.objects_of(test), f"plain-{abs(hash(key)):x}")
                began = time.monotonic()
                how = self.run(level_of(test), program, cases, 10 * PATIENCE)
                if how:
                    raise Broken(f"{test} {how} without a mutant")
                self.passed[key] = time.monotonic() - began
        return PATIENCE + TIMES * self.passed[key]

    def unit_of(self, source, broken, directory):
        """A copy of the unity source that includes `source`, with the broken one instead; None: there is no unity."""
        for unit in BUILD.glob("CMakeFiles/zkasio*.dir/Unity/*.cxx"):
            text = unit.read_text()
            if f'"{source}"' in text:
                copy = directory / unit.name
                copy.write_text(text.replace(f'"{source}"', f'"{broken}"'))
                return copy
        return None

    def attempt(self, mutant, number):
        source = ROOT / "lib/zkasio" / mutant["file"]
        text = source.read_text()
        cases = [mutant["cases"]] if "cases" in mutant else []
        limit = self.require_passing(mutant["test"], cases)
        directory = self.scratch / f"mutant-{number}"
        broken = directory / "zkasio" / mutant["file"]
        broken.parent.mkdir(parents=True)
        broken.write_text(text.replace(mutant["before"], mutant["after"]))
        level = level_of(mutant["test"])
        attempted = lambda objects: self.run(level, self.link(level, objects, f"mutant-{number}.x"), cases, limit)
        if source.suffix == ".hpp":
            return attempted(self.objects_of(mutant["test"], before=[directory]))
        test = self.objects_of(mutant["test"])
        how = attempted([self.compiler.compile(broken, "zkasio"), *test])
        unit = None if how else self.unit_of(source, broken, directory)
        if unit:
            how = attempted([self.compiler.compile(unit, "zkasio"), *test])
        return how

    def judge(self, mutant, number):
        """(the result, whether it is as it should be)"""
        try:
            how = self.attempt(mutant, number)
        except Broken as e:
            return f"error: {e}", False
        reason = mutant.get("survives")
        if reason:
            return (f"survives: {reason}", True) if not how else ("killed, and said to survive", False)
        return (f"killed: {mutant['test']} {how}", True) if how else (f"SURVIVES {mutant['test']}", False)


def mistakes(mutant):
    """What has changed since the table was written."""
    source, test = ROOT / "lib/zkasio" / mutant["file"], ROOT / "tests" / mutant["test"]
    for file in (source, test):
        if not file.is_file():
            yield f"there is no {file.relative_to(ROOT)}"
            return
    found = source.read_text().count(mutant["before"])
    if found != 1:
        yield f"its text is there {found} times"


def read_tables(files):
    mutants = []
    for table in sorted((ROOT / "tests/mutants").glob("*.toml")):
        for mutant in tomllib.loads(table.read_text())["mutant"]:
            unknown = set(mutant) - {"name", "file", "before", "after", "test", "cases", "survives"}
            if unknown or not {"name", "file", "before", "after", "test"} <= set(mutant):
                sys.exit(f"error: {table.name}: {mutant.get('name', mutant)}: a field is missing, or unknown")
            for mistake in mistakes(mutant):
                sys.exit(f"error: {table.name}: {mutant['name']}: {mistake}")
            if not files or any(f in mutant["file"] or f in table.name for f in files):
                mutants.append(mutant)
    if not mutants:
        sys.exit("error: no mutant of " + " ".join(files))
    return mutants


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="only whether each can be made")
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*")
    how = parser.parse_args()
    mutants = read_tables(how.files)
    if how.check:
        return 0
    if not how.scratch:
        parser.error("--scratch is needed")
    suite = Suite(how.scratch)
    began, as_expected = time.monotonic(), True
    counts = {"killed": 0, "survives": 0}
    with concurrent.futures.ThreadPoolExecutor(how.jobs) as pool:
        running = [pool.submit(suite.judge, m, i) for i, m in enumerate(mutants)]
        for mutant, result in zip(mutants, running):
            text, fine = result.result()
            as_expected = as_expected and fine
            counts["killed"] += text.startswith("killed: ")
            counts["survives"] += text.startswith("survives: ")
            print(f"{'' if fine else '!! '}{mutant['name']} ({mutant['file']})\n    {text}", flush=True)
    wrong = len(mutants) - counts["killed"] - counts["survives"]
    print(f"\n{len(mutants)} mutants: {counts['killed']} killed, {counts['survives']} survive for a reason, "
          f"{wrong} are not as they should be; {time.monotonic() - began:.0f} s")
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
