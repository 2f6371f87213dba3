# SPDX-License-Identifier: Apache-2.0
"""Whether the processors are wholly ours. On a virtual machine another guest may use the other hardware thread of a core,
for seconds at a time; then what runs here takes up to one and a half times as long. What a program takes says nothing of
it, so a loop whose time is known is timed before and after each run."""

import dataclasses
import pathlib
import subprocess
import time

from harness import build


usual_patience_s = 180


def add_patience(parser):
    parser.add_argument("--patience", metavar="S", type=float, default=usual_patience_s,
                        help="seconds, in all, to wait until no other guest shares a core, and for runs that one disturbed "
                             "[%(default)s]")


def of(given):
    """For a command with add_patience() and --build-dir."""
    return Cores(given.build_dir / "bench" / "cores_share", given.patience)


def _kind(processor):
    """Processors of one kind are equally fast when nobody shares them; where all are, or nothing is said, the same."""
    found = pathlib.Path("/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq" % processor)
    return found.read_text(encoding="ascii") if found.exists() else ""


@dataclasses.dataclass
class Cores:
    program: object  # bench/cores_share
    patience_s: float  # so long it waits for them, in all; 0 or less: no longer
    quickest: dict = dataclasses.field(default_factory=dict)  # kind of processor -> ns of the loop, the best so far
    last: dict = dataclasses.field(default_factory=dict)  # processor -> ns of the loop

    asked_s: float = 0  # what patience_s was at first

    # Shared cores take 1.6 to 2 times the quickest, others up to 1.15 times.
    tolerance = 1.3
    pause_s = 0.1
    first_looks = 20

    def __post_init__(self):
        self.asked_s = self.patience_s
        for _ in range(self.first_looks):
            self.look()

    def look(self):
        done = subprocess.run([self.program], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise build.Failed("%s ended with code %d" % (self.program, done.returncode))
        self.last = {int(processor): float(took) for processor, took in map(str.split, done.stdout.splitlines())}
        for processor, took in self.last.items():
            kind = _kind(processor)
            self.quickest[kind] = min(self.quickest.get(kind, took), took)

    def choose(self, count):
        """The processors for a program that uses so many, after a wait until they are ours, as long as the patience
        lasts."""
        while not self.are_whole(self.took_on(self._best(count))) and self.patience_s > 0:
            began = time.monotonic()
            time.sleep(self.pause_s)
            self.look()
            self.patience_s -= time.monotonic() - began
        return self._best(count)

    def run(self, count, work):
        """What work(processors) returned, on so many of them, and what the loop took beside it. It is run again where
        another guest came meanwhile, as long as the patience lasts."""
        while True:
            processors = self.choose(count)
            before, began = self.took_on(processors), time.monotonic()
            answer = work(processors)
            self.look()
            after = self.took_on(processors)
            took = {p: max(before[p], after[p]) for p in processors}
            if self.patience_s <= 0 or self.are_whole(took):
                return answer, took
            self.patience_s -= time.monotonic() - began

    def took_on(self, processors):
        """What the loop took at last on each of these."""
        return {p: self.last[p] for p in processors}

    def are_whole(self, took):
        """Whether nobody shared these processors while the loop took so long on them."""
        return all(ns <= self.tolerance * self.quickest[_kind(p)] for p, ns in took.items())

    def words(self):
        """For a page of figures that were measured with run()."""
        return "Each run waits until no other guest shares a core (`bench/cores_share`), and is repeated if one came" + (
            "." if self.patience_s > 0 else ", for %g seconds in all, which were over before the end." % self.asked_s)

    def _best(self, count):
        return sorted(self.last, key=self.last.get)[:count]
