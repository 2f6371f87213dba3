# SPDX-License-Identifier: Apache-2.0
"""Runs the programs, alternately and there and back, so that a slow minute of the machine hits all of them alike and
nobody always comes after the same one."""

import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys


# How often what a bar times is run in one repetition.
turns_of_decisive = 3
# Where fewer runs than that had the processors to themselves, all count.
whole_min = 3


class Failed(Exception):
    pass


@dataclasses.dataclass
class Result:
    case: object
    seconds: list = dataclasses.field(default_factory=list)
    memory_mb: list = dataclasses.field(default_factory=list)
    shares: list = dataclasses.field(default_factory=list)  # what the loop of cores.py took around each run
    whole: list = dataclasses.field(default_factory=list)  # whether the processors were ours
    answers: list = dataclasses.field(default_factory=list)  # all that each run has printed of itself
    units: float = 0
    ok: bool = True

    @property
    def is_shared(self):
        """Too few runs had the processors to themselves."""
        return self.whole.count(True) < min(whole_min, len(self.whole))

    @property
    def counting(self):
        """The times of the runs that had the processors to themselves; of all if those are too few."""
        return self.seconds if self.is_shared else [s for s, w in zip(self.seconds, self.whole, strict=True) if w]

    @property
    def median(self):
        return statistics.median(self.counting)

    @property
    def unit_ns(self):
        return self.median / self.units * 1e9

    def unit_ratio(self, to):
        """Its time per unit as a multiple of the other's: the median of the ratios turn by turn, since what a machine
        gives differs more from minute to minute than within a turn."""
        shared = self.shares_with(to)
        turns = zip(self.seconds, to.seconds, self._whole_with(to), strict=True)
        return statistics.median(s / self.units / (t / to.units) for s, t, whole in turns if whole or shared)

    def shares_with(self, to):
        """In too few turns both had the processors to themselves: then all count in unit_ratio()."""
        whole = self._whole_with(to)
        return whole.count(True) < min(whole_min, len(whole))

    def _whole_with(self, to):
        return [a and b for a, b in zip(self.whole, to.whole, strict=True)]

    @property
    def peak_mb(self):
        return statistics.median(self.memory_mb)

    @property
    def spread(self):
        """Half of the distance between the fastest and the slowest run, as a part of the median."""
        return (max(self.counting) - min(self.counting)) / 2 / self.median if self.median > 0 else 0


def _output_of(command, processors):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, processors))
    if done.returncode != 0:
        raise Failed("%s ended with code %d" % (" ".join(command), done.returncode))
    return done.stdout


def answer_in(text, command):
    """The last line that the command has printed, which is one JSON object."""
    try:
        return json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed("no JSON on the last line of what is printed by %s" % " ".join(map(str, command))) from None


def _parasail_seconds(case, text):
    """The time of one sweep, out of the table of cells per second."""
    blocks = re.split(r"^(?=\S)", text, flags=re.M)[1:]
    rates = [float(rate) for name, rate in re.findall(r"^  (.+?) +([\d.]+) billion cells/s", blocks[case.block], re.M)
             if case.line in name]
    return case.units / (max(rates) * 1e9)


def _record(result, text, share):
    case = result.case
    result.shares.append(share)
    if case.answer == "parasail":
        result.seconds.append(_parasail_seconds(case, text))
        result.units = case.units
        return
    answer = answer_in(text, case.command)
    result.answers.append(answer)
    result.ok = result.ok and answer["ok"]
    result.seconds.append(answer["seconds"])
    result.memory_mb.append(answer.get("peak_mb", 0))
    result.units = answer["units"] if case.answer == "bench" else case.units


def _run(case, cores):
    """What it has printed, and what the loop of cores.py took beside it."""
    return cores.run(1 if case.is_alone else len(cores.last), lambda on: _output_of(case.command, on))


def _runs(members, rep, decisive):
    """The cases of one repetition, in the order in which they run: all of them, then again what bars compare."""
    for turn in range(turns_of_decisive):
        back = (rep * turns_of_decisive + turn) % 2 == 1
        for case in reversed(members) if back else members:
            again = case.key in decisive and case.again
            if rep < case.reps_max and (turn == 0 or again):
                yield turn, case


def run_all(cases, reps, cores, decisive=frozenset()):
    """key -> Result. The cases whose keys are in `decisive` take several turns in each repetition: a bar is decided in
    the third digit, while single runs differ in the second."""
    results = {case.key: Result(case) for case in cases}
    by_kernel = {}
    for case in cases:
        by_kernel.setdefault(case.kernel, []).append(case)
    for kernel, members in by_kernel.items():
        for rep in range(reps):
            outputs = {}  # one run of a program that answers for several cases is enough
            for turn, case in _runs(members, rep, decisive):
                if sys.stderr.isatty():
                    print("\r%s %s %s, %d of %d\x1b[K" % (kernel, case.impl, case.parameter, rep + 1, reps), end="",
                          file=sys.stderr, flush=True)
                if (turn, case.command) not in outputs:
                    outputs[turn, case.command] = _run(case, cores)
                _record(results[case.key], *outputs[turn, case.command])
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    for r in results.values():
        r.whole = [cores.are_whole(share) for share in r.shares]
    return results


def left_out(results):
    """How many runs shared the processors, of how many."""
    found = list(results.values())
    return sum(r.whole.count(False) for r in found), sum(len(r.whole) for r in found)
