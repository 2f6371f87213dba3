#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the pthread tests of a checkout of the Open POSIX Test Suite (or of one with its layout) three ways: with the C
library's threads, compiled against our folder of headers, and as built for the C library under `strata pthread`. Prints
how they ended for each interface, and which ended otherwise than with the C library's threads. Fetches nothing; needs
a build of ours, cc, c++ and pkg-config. Exit status: 0: all ended as with the C library; 1: some did not; 2: nothing
could be run."""

import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
# What the suite's programs exit with (its posixtest.h), and what else can happen.
outcomes = {0: "passed", 1: "failed", 2: "unresolved", 4: "unsupported", 5: "untested"}
columns = [*outcomes.values(), "crashed", "hung", "not built"]
ways = ["native", "shim", "preload"]
interfaces = ["pthread_*", "sem_*", "sched_yield", "nanosleep", "clock_nanosleep", "sigwait", "raise"]


class Unusable(Exception):
    pass


def arguments():
    parser = argparse.ArgumentParser(prog="posix_suite.py", description=__doc__)
    parser.add_argument("suite", type=pathlib.Path, help="its folder: has include/ and conformance/interfaces/")
    parser.add_argument("--build-dir", metavar="DIR", type=pathlib.Path, default=root / "build" / "release",
                        help="our build folder [build/release]")
    parser.add_argument("--way", action="append", choices=ways, default=[],
                        help="only this, beside native (may be repeated) [all]")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="only these interfaces (may be repeated) [%s]" % " ".join(interfaces))
    parser.add_argument("--timeout", metavar="S", type=float, default=60, help="a program hangs after so long [60]")
    parser.add_argument("--workers", metavar="N", type=int, default=2, help="of our runtime [2]")
    parser.add_argument("--jobs", metavar="N", type=int, default=1,
                        help="so many programs at a time; some of the suite's fail on busy machines [1]")
    given = parser.parse_args()
    if given.timeout <= 0 or given.workers < 1 or given.jobs < 1:
        parser.error("--timeout, --workers and --jobs take numbers above 0")
    return given


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Unusable("%s ended with code %d" % (shlex.join(command), done.returncode))
    return done.stdout


class Ways:
    """How a source becomes a program, and how that is started."""

    def __init__(self, given):
        self._compile = [os.environ.get("CC", "cc"), "-std=gnu11", "-w", "-D_GNU_SOURCE", "-pthread",
                         "-I", str(given.suite / "include")]
        self._link = [os.environ.get("CXX", "c++"), "-pthread"]
        self._command = given.build_dir / "bin" / "strata"
        self._library = given.build_dir / "src" / "libstrata.a"
        self._folders = [root / "include" / "strata" / "shim", root / "include"]
        self.chosen = [w for w in ways if w == "native" or not given.way or w in given.way]
        for needed in [self._library] * ("shim" in self.chosen) + [self._command] * ("preload" in self.chosen):
            if not needed.exists():
                raise Unusable("there is no %s: build first, or name the folder with --build-dir" % needed)
        self._needs = shlex.split(output_of(["pkg-config", "--libs", "hwloc", "libsodium"]))

    def build(self, way, source, program):
        """Whether it could be built. What is preloaded is the native one."""
        folders = ["-I" + str(f) for f in self._folders] if way == "shim" else []
        made = program.with_suffix(".o")
        libraries = [str(self._library), *self._needs] if way == "shim" else []
        steps = [[*self._compile, *folders, "-I", str(source.parent), "-c", str(source), "-o", str(made)],
                 [*self._link, str(made), *libraries, "-lrt", "-lm", "-o", str(program)]]
        return all(subprocess.run(step, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
                   for step in steps)

    def start(self, way, program):
        return [str(self._command), "pthread", str(program)] if way == "preload" else [str(program)]


def run(command, given, folder):
    """A word of `columns`."""
    settings = dict(os.environ, STRATA_WORKERS=str(given.workers))
    # A group of its own, so that children end with it.
    with subprocess.Popen(command, cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as started:
        try:
            code = started.wait(given.timeout)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return "hung" if code is None else outcomes.get(code, "crashed")


def tests_of(given):
    """(interface, name, source) of all that are programs by themselves."""
    place = given.suite / "conformance" / "interfaces"
    if not place.is_dir():
        raise Unusable("%s is no folder: name the checkout of the suite itself" % place)
    wanted = given.only or interfaces
    found = []
    for folder in sorted(p for p in place.iterdir() if p.is_dir()):
        if not any(fnmatch.fnmatchcase(folder.name, w) for w in wanted):
            continue
        sources = [s for s in folder.glob("*.c") if re.fullmatch(r"\d+-\d+", s.stem)]
        found += [(folder.name, s.stem, s.resolve())
                  for s in sorted(sources, key=lambda s: [int(n) for n in s.stem.split("-")])]
    if not found:
        raise Unusable("no tests of %s in %s" % (", ".join(wanted), place))
    return found


def try_one(test, how, given, folder):
    """way -> word"""
    interface, name, source = test
    ended = {}
    here = folder / interface / name
    here.mkdir(parents=True)
    built = {w: how.build(w, source, here / w) for w in how.chosen if w != "preload"}
    for way in how.chosen:
        program = "native" if way == "preload" else way
        ended[way] = run(how.start(way, here / program), given, here) if built[program] else "not built"
    return ended


def table(tests, results, chosen):
    lines = ["%-42s %-8s" % ("interface", "way") + "".join("%12s" % c for c in columns)]
    counts = collections.defaultdict(collections.Counter)
    for (interface, _, _), ended in zip(tests, results):
        for way, word in ended.items():
            counts[interface, way][word] += 1
            counts["all", way][word] += 1
    for interface in [*dict.fromkeys(t[0] for t in tests), "all"]:
        lines += ["%-42s %-8s" % (interface, way) + "".join("%12d" % counts[interface, way][c] for c in columns)
                  for way in chosen]
    return lines


def main():
    given = arguments()
    given.suite = given.suite.resolve()
    given.build_dir = given.build_dir.resolve()
    how = Ways(given)
    tests = tests_of(given)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda t: try_one(t, how, given, pathlib.Path(folder)), tests))
    print("\n".join(table(tests, results, how.chosen)))
    other = ["%s %s: %s with %s, %s with the C library" % (interface, name, ended[way], way, ended["native"])
             for (interface, name, _), ended in zip(tests, results)
             for way in how.chosen if ended[way] != ended["native"]]
    if other:
        print("\nOtherwise than with the C library's threads:\n  " + "\n  ".join(other))
    return 1 if other else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unusable as e:
        print("posix_suite.py: %s" % e, file=sys.stderr)
        sys.exit(2)
