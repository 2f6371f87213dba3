# SPDX-License-Identifier: Apache-2.0
"""Compares what was measured with the bars, which are in a file of JSON: for each section a list of them.

A bar is about the case `of`, by its key (measure.run_all). `kind` says what of it: unit_ns, its nanoseconds per unit; seconds,
what it says itself; speedup, over the same with one worker; and by comparison with the case `to`, of which there may be a list
where the fastest counts: ratio of times, rate, memory_above. What is `at_most` or `at_least` so much reaches the bar."""

import dataclasses
import json


@dataclasses.dataclass
class Bar:
    what: str
    value: float = None
    limit: str = ""
    verdict: str = "not measured"
    is_about_nothing: bool = False  # what it is about was not measured; else it may lack what it is compared with
    shared: bool = False  # on processors that another guest used as well

    @property
    def words(self):
        return self.verdict + (", on shared cores" if self.shared else "")


def references(bar):
    """The keys of what it is compared with, of which those that are not installed are not measured."""
    if bar["kind"] == "speedup":
        return [(*bar["of"][:3], 1)]
    to = bar.get("to", [])
    return [tuple(key) for key in ([to] if to and isinstance(to[0], str) else to)]


def _best_reference(bar, results):
    measured = [results[key] for key in references(bar) if key in results]
    return min(measured, key=lambda r: r.unit_ns, default=None)


def _value(bar, of, to):
    kind = bar["kind"]
    if kind == "unit_ns":
        return of.unit_ns
    if kind == "seconds":
        return of.median
    if to is None:
        return None
    if kind == "memory_above":
        return of.peak_mb - to.peak_mb
    return of.unit_ratio(to) if kind == "ratio" else 1 / of.unit_ratio(to)


def listed(path, section, kernels=None):
    """Those about one of `kernels`; about any if not set."""
    of_section = json.loads(path.read_text(encoding="utf-8"))[section]
    return [bar for bar in of_section if kernels is None or bar["of"][0] in kernels]


def compared(path, section):
    """The keys of the cases that bars depend on."""
    return {key for bar in listed(path, section) for key in [tuple(bar["of"]), *references(bar)]}


def bars(path, results, section, kernels=None):
    judged = []
    for bar in listed(path, section, kernels):
        b = Bar(bar["what"])
        of, to = results.get(tuple(bar["of"])), _best_reference(bar, results)
        b.is_about_nothing = of is None
        b.value = _value(bar, of, to) if of else None
        lower = "at_least" in bar
        goal = bar["at_least"] if lower else bar["at_most"]
        sign = "≥" if lower else "≤"
        b.limit = "%s %g" % (sign, goal)
        if "stretch" in bar:
            b.limit += ", stretch %s %g" % (sign, bar["stretch"])
        if b.value is not None:
            b.shared = of.shares_with(to) if to else of.is_shared

            def reached(x):
                return b.value >= x if lower else b.value <= x
            b.verdict = "missed"
            if reached(goal):
                b.verdict = "reached"
            if "stretch" in bar and reached(bar["stretch"]):
                b.verdict = "stretch reached"
        judged.append(b)
    return judged


def status(results, judged, strict):
    """What a command ends with. What a bar is compared with may not be installed; what it is about has to be there."""
    wrong = any(not r.ok for r in results.values())
    return 1 if wrong or (strict and any(b.verdict == "missed" or b.is_about_nothing for b in judged)) else 0
