#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages_bars.py planned | measured BUILD: what bench/messages/run --bars measures, and how it judges.

planned: with everything installed, each bar of messages between threads finds what it is about, and a figure beyond it is told.
measured: a short run with the programs in BUILD. Numbers are no matter here."""

import argparse
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent
command = root / "bench" / "messages" / "run"
run_module = written.loaded(command)

from harness import judge, measure  # noqa: E402
from messages import bars, system_calls  # noqa: E402

endpoints, mebibyte = "endpoints", 1 << 20
best = ["ucx_shm", "ucx_tags_shm", "openmpi", "mpich"]
both, both_over_ucx = ["threads_shm", "threads_shm_polling"], ["threads_ucx", "threads_ucx_polling"]
# (what is measured, compared with the best of these) -> what it has to be. Nanoseconds, and ratios.
asked = {
    **{(endpoints, name, "latency 64", ()): "≤ 500" for name in both},
    (endpoints, "here_1", "latency 64", ()): "≤ 50",
    (endpoints, "here_2", "latency 64", ()): "≤ 150",
    **{(endpoints, name, "stream %d" % size, tuple(best)): "≥ %g" % least
       for name in both for size, least in [(4096, 1), (65536, 0.95), (mebibyte, 0.95), (4 * mebibyte, 1.2)]},
    **{(endpoints, name, "latency 64", ("ucx_tcp",)): "≤ 1.1" for name in both_over_ucx},
    (endpoints, "threads_shm_blocking", "woken 64", ("bare_ring",)): "≤ 1.1",
    ("system_calls", "threads_shm_polling", "latency 64", ()): "≤ 0.001",
    (endpoints, "threads_shm", "crowd", ()): "≤ 1000",
    (endpoints, "threads_shm", "call", ()): "≤ 1200",
    (endpoints, "threads_tcp", "call", ()): "≤ 9000",
}


class Cores:
    """Nobody else's."""

    def are_whole(self, share):
        return True


class Planned(unittest.TestCase):
    def setUp(self):
        for where, name, instead in [
                (bars.jobs, "has_ucx", lambda build_dir: True), (bars.mpi, "available", lambda kind, transport: True),
                (system_calls, "available", lambda: True), (shutil, "which", lambda name: "/usr/bin/" + name),
                (bars.cores, "of", lambda given: Cores()), (bars.machine, "describe", lambda build_dir: {}),
                (bars.machine, "warn_if_busy", lambda: None)]:
            patch = unittest.mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def given(self, *words):
        with unittest.mock.patch.object(sys, "argv", ["run", "--no-build", *words]):
            return run_module.arguments()

    def test_all_that_is_asked_for_is_a_bar(self):
        found = {}
        for bar, judged in zip(judge.listed(bars.bars_file, "endpoints"), judge.bars(bars.bars_file, {}, "endpoints"), strict=True):
            of, to = bar["of"], judge.references(bar)
            self.assertEqual([key[0:1] + key[2:] for key in to], [(of[0], of[2], of[3])] * len(to))
            key = (*of[:3], tuple(key[1] for key in to))
            self.assertNotIn(key, found)
            found[key] = judged.limit
        self.assertEqual(found, asked)

    def test_every_bar_is_measured_and_nothing_else(self):
        cases = [case.key for case in bars.cases(self.given("--bars"))]
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(set(cases), judge.compared(bars.bars_file, "endpoints"))

    def test_no_two_are_the_same_measurement(self):
        commands = [case.command for case in bars.cases(self.given("--bars"))]
        self.assertEqual(len(commands), len(set(commands)))

    def run_with(self, unit_ns, *words, before=None):
        """What the command ends with, the files that it leaves, and what it says, where a case takes unit_ns(its key) for each
        unit; before: what the page holds."""
        def instead(cases, reps, cores, decisive):
            results = {}
            for case in cases:
                seconds = unit_ns(case.key) * (1 if case.kernel == "system_calls" else 1e-9)
                results[case.key] = measure.Result(case, [seconds] * reps, [0.0] * reps, [{}] * reps, [True] * reps, units=1)
            return results
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said), \
                unittest.mock.patch.object(measure, "run_all", instead):
            if before:
                (pathlib.Path(folder) / "performance.md").write_text(before, encoding="utf-8")
            status = bars.run(self.given("--out", folder, *words), root)
            files_ = {p.name: p.read_text(encoding="utf-8") for p in pathlib.Path(folder).iterdir()}
        return status, files_, said.getvalue()

    @staticmethod
    def fast(key):
        """As Strata would have to be for every bar."""
        return 0 if key[0] == "system_calls" else 40 if key[1].startswith(("here", "threads")) else 60

    def test_a_figure_beyond_its_bar_fails(self):
        status, files_, said = self.run_with(self.fast, "--strict")
        self.assertEqual(status, 0)
        page = files_["performance.md"]
        self.assertIn("`bench/messages/run --bars`", page)
        self.assertEqual(page.count("| reached |"), len(asked))
        self.assertEqual(list(files_), ["performance.md"])
        for kernel, impl, parameter, to in asked:
            with self.subTest(impl=impl, parameter=parameter):
                def one_is_slow(key):
                    return 1e5 if key[:3] == (kernel, impl, parameter) else self.fast(key)
                status, files_, said = self.run_with(one_is_slow, "--strict")
                self.assertEqual((status, files_["performance.md"].count("| missed |")), (1, 1))
                self.assertEqual(self.run_with(one_is_slow, "--bars")[0], 0)

    def test_it_is_the_best_that_counts(self):
        for name in best:
            def one_is_quicker(key):
                return 30 if key[:3] == (endpoints, name, "stream 65536") else self.fast(key)
            status, files_, said = self.run_with(one_is_quicker, "--strict")
            self.assertEqual((status, files_["performance.md"].count("| missed |")), (1, len(both)), name)

    def test_what_is_not_installed_is_not_measured(self):
        with unittest.mock.patch.object(shutil, "which", lambda name: None), \
                unittest.mock.patch.object(bars.mpi, "available", lambda kind, transport: kind == "openmpi"):
            status, files_, said = self.run_with(self.fast, "--strict")
        page = files_["performance.md"]
        self.assertEqual((status, page.count("| not measured |")), (0, len(both_over_ucx)))
        self.assertEqual(page.count("| reached |"), len(asked) - len(both_over_ucx))
        self.assertEqual(said.count("not measured"), len(both_over_ucx))

    def test_what_a_bar_is_about_has_to_be_measured(self):
        for where, name, instead, lacks in [(system_calls, "available", lambda: False, 1),
                                            (bars.jobs, "has_ucx", lambda build_dir: False, len(both_over_ucx))]:
            with self.subTest(name=name), unittest.mock.patch.object(where, name, instead):
                status, files_, said = self.run_with(self.fast, "--strict")
                self.assertEqual((status, files_["performance.md"].count("| not measured |")), (1, lacks))
                self.assertEqual(self.run_with(self.fast, "--bars")[0], 0)

    def test_the_quick_way_writes_nothing(self):
        status, files_, said = self.run_with(self.fast, "--bars", "--quick")
        self.assertEqual((status, files_), (0, {}))
        self.assertIn("an empty call over tcp", said)

    def test_a_page_keeps_what_else_it_holds(self):
        older = "# Performance\n\nkept\n\n<!-- endpoints:begin (written by bench/messages/run --bars; edits between the markers are " \
                "lost) -->\nlost\n<!-- endpoints:end -->\n\nkept as well\n"
        page = self.run_with(self.fast, "--bars", before=older)[1]["performance.md"]
        self.assertTrue(page.startswith("# Performance\n\nkept\n\n<!-- endpoints:begin "))
        self.assertTrue(page.endswith("<!-- endpoints:end -->\n\nkept as well\n"))
        self.assertNotIn("\nlost\n", page)
        self.assertEqual(self.run_with(self.fast, "--bars", before=page)[1]["performance.md"], page)

    def test_options_of_the_figure_are_refused(self):
        for words in [["--bars", "--sizes", "64"], ["--strict", "--transports", "shm"]]:
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                self.given(*words)
            self.assertEqual(ended.exception.code, 2)


class Counting(unittest.TestCase):
    def test_the_total_is_found(self):
        newer = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 66.67    0.000002           2         1           read
 33.33    0.000001           0         4         1 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.000003           0         5         1 total
"""
        older = newer.replace("0.000003           0 ", "0.000003             ").replace("        1 total", "          total")
        self.assertEqual([system_calls.total(text) for text in [newer, older]], [5, 5])


class Measured(unittest.TestCase):
    build = None

    def test_every_bar_that_can_be_is_measured(self):
        done = subprocess.run([sys.executable, command, "--bars", "--quick", "--no-build", "--patience", "0", "--build-dir",
                               self.build], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        given = argparse.Namespace(build_dir=self.build, quick=True)
        measured = {case.key for case in bars.cases(given)}
        for bar in judge.listed(bars.bars_file, "endpoints"):
            references = judge.references(bar)
            if tuple(bar["of"]) in measured and (not references or measured & set(references)):
                self.assertIn("\n%s  " % bar["what"], done.stdout)


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or [""]
    if what == "measured" and len(rest) == 1:
        Measured.build = pathlib.Path(rest[0]).resolve()
        chosen = [Measured]
    elif what == "planned" and not rest:
        chosen = [Planned, Counting]
    else:
        sys.exit("usage: messages_bars.py planned | measured BUILD")
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    result = unittest.TextTestRunner().run(unittest.TestSuite(map(load, chosen)))
    sys.exit(0 if result.wasSuccessful() else 1)
