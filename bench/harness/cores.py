# SPDX-License-Identifier: Apache-2.0
"""Whether the processors are wholly ours. On a virtual machine another guest may use the other hardware thread of a core,
for seconds at a time; then what runs here takes up to one and a half times as long. What a program takes says nothing of
it, so a loop whose time is known is timed before and after each run."""

import dataclasses
import subprocess
import time

from harness import build


@dataclasses.dataclass
class Cores:
    program: object  # bench/cores_share
    patience_s: float = 180  # so long it waits for them, in all
    quickest: float = float("inf")  # of the loops so far, in ns
    last: dict = dataclasses.field(default_factory=dict)  # processor -> what the loop took

    # Shared cores take 1.6 to 2 times the quickest, others up to 1.15 times.
    tolerance = 1.3
    pause_s = 0.1
    first_looks = 20

    def __post_init__(self):
        for _ in range(self.first_looks):
            self.look()

    def look(self):
        done = subprocess.run([self.program], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise build.Failed("%s ended with code %d" % (self.program, done.returncode))
        self.last = {int(processor): float(took) for processor, took in map(str.split, done.stdout.splitlines())}
        self.quickest = min(self.quickest, *self.last.values())

    def choose(self, count):
        """The processors for a program that uses so many, after a wait until they are ours, as long as the patience
        lasts."""
        while not self.are_whole(self.slowest(self._best(count))) and self.patience_s > 0:
            began = time.monotonic()
            time.sleep(self.pause_s)
            self.look()
            self.patience_s -= time.monotonic() - began
        return self._best(count)

    def wait(self):
        """Until all of them are ours, as long as the patience lasts."""
        self.look()
        self.choose(len(self.last))

    def slowest(self, processors):
        """How long the loop took at last on the slowest of these."""
        return max(self.last[p] for p in processors)

    def are_whole(self, took):
        return took <= self.tolerance * self.quickest

    def words(self):
        """For a page of figures that were measured with wait()."""
        return "Each run waits until no other guest shares a core (`bench/cores_share`)" + (
            "." if self.patience_s > 0 else ", for three minutes in all, which were over before the end.")

    def _best(self, count):
        return sorted(self.last, key=self.last.get)[:count]
