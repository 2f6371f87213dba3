#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planned.py: with everything installed bench/run measures what each bar of one node and of several is about, and fails with
--strict where one is missed or has nothing to judge. And each of its rows that a document names is there. Nothing is run."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent
module = written.loaded(root / "bench" / "run")

from harness import judge, measure, nodes, plan  # noqa: E402

bars_file = root / "bench" / "bars.json"
kernels = {"bench": plan.kernels, "nodes": nodes.kernels}
strict = {"bench": ["--strict"], "nodes": ["--strict", "--nodes"]}


class Planned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build_dir = pathlib.Path(folder.name)
        for name in ["bench", "bin"]:
            (self.build_dir / name).mkdir()
        for program in ["%s_%s" % (kernel, impl) for kernel, impls in plan.problems.items() for impl in impls]:
            (self.build_dir / "bench" / program).touch()
        for program in ["align", "align_bench_parasail", "fib", "nqueens", "uts"]:
            (self.build_dir / "bin" / program).touch()
        for where, name, instead in [
                (plan, "_sequence", lambda path: "ACGT"), (nodes, "_has_ucx", lambda bench: True),
                (nodes.shutil, "which", lambda name: "/usr/bin/" + name),
                (module.build, "ensure", lambda *_: None), (module.cores, "of", lambda given: None),
                (module.machine, "describe", lambda build_dir: {}), (module.machine, "warn_if_busy", lambda: None),
                (module.files, "prepare", lambda path: None), (module.report, "write", lambda *_: None),
                (module.charts, "write", lambda *_: None)]:
            patch = unittest.mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)

    def cases(self, section):
        folder = self.build_dir
        return plan.cases(plan.kernels, [1, 2], False, folder, root) if section == "bench" else nodes.cases(
            nodes.kernels, False, folder, root)

    def test_every_bar_finds_what_it_is_about(self):
        for section, of_section in kernels.items():
            keys = [case.key for case in self.cases(section)]
            self.assertEqual(len(keys), len(set(keys)))
            self.assertEqual(judge.compared(bars_file, section) - set(keys), set())
            self.assertEqual(judge.listed(bars_file, section, of_section), judge.listed(bars_file, section))

    @staticmethod
    def fast(key):
        """As Strata would have to be for every bar."""
        kernel, impl, parameter, workers = key
        if impl.startswith("two_nodes"):
            return 5
        return 10 / workers if impl.startswith(("strata", "operations", "kernel")) or kernel == "nodes" else 100

    def run_with(self, unit_ns, *words):
        """What the command ends with, and what it says, where a case takes unit_ns(its key) for each unit."""
        def instead(cases, reps, cores, decisive):
            return {case.key: measure.Result(case, [unit_ns(case.key) * 1e-9] * reps, [8] * reps, [0] * reps, [True] * reps,
                                             units=1) for case in cases}
        said = io.StringIO()
        with contextlib.redirect_stdout(said), unittest.mock.patch.object(measure, "run_all", instead), \
                unittest.mock.patch.object(sys, "argv", ["run", "--build-dir", str(self.build_dir), *words]):
            return module.main(), said.getvalue()

    def test_a_figure_beyond_its_bar_fails(self):
        for section, words in strict.items():
            status, said = self.run_with(self.fast, *words)
            self.assertEqual((status, said.count(" reached\n")), (0, len(judge.listed(bars_file, section))), said)
            for bar in judge.listed(bars_file, section):
                if bar["kind"] == "memory_above":
                    continue
                with self.subTest(bar=bar["what"]):
                    def one_is_slow(key):
                        return 2e8 if key == tuple(bar["of"]) else self.fast(key)
                    status, said = self.run_with(one_is_slow, *words)
                    self.assertEqual(status, 1)
                    self.assertRegex(said, "\n%s .* missed\n" % re.escape(bar["what"]))
                    self.assertEqual(self.run_with(one_is_slow, *words[1:])[0], 0)

    def test_what_a_bar_is_about_has_to_be_measured(self):
        for program in ["bench/fib_strata_fork_join", "bench/idle_strata", "bin/align_bench_parasail", "bin/nqueens"]:
            with self.subTest(program=program):
                section = "nodes" if program == "bin/nqueens" else "bench"
                (self.build_dir / program).unlink()
                status, said = self.run_with(self.fast, *strict[section])
                self.assertEqual(status, 1)
                self.assertIn(" not measured\n", said)
                self.assertEqual(self.run_with(self.fast, *strict[section][1:])[0], 0)
                (self.build_dir / program).touch()

    def test_what_it_is_compared_with_need_not_be_there(self):
        (self.build_dir / "bench" / "region_tbb").unlink()
        status, said = self.run_with(self.fast, "--strict")
        self.assertEqual((status, said.count(" not measured\n")), (0, 2))
        with unittest.mock.patch.object(nodes.shutil, "which", lambda name: None):
            self.assertEqual(self.run_with(self.fast, "--strict", "--only", "nodes")[0], 0)

    def test_a_part_is_judged_by_its_own_bars(self):
        def told(*words):
            status, said = self.run_with(self.fast, "--strict", *words)
            return status, {bar["what"] for section in kernels for bar in judge.listed(bars_file, section)
                            if "\n%s  " % bar["what"] in said}

        def of(section, kernel):
            return {bar["what"] for bar in judge.listed(bars_file, section, [kernel])}
        self.assertEqual(told("--only", "context_switch"), (0, set()))
        self.assertEqual(told("--only", "idle"), (0, of("bench", "idle")))
        self.assertEqual(told("--only", "fib", "--only", "nodes"), (0, of("bench", "fib") | of("nodes", "nodes")))

    def test_rows_that_documents_name_are_there(self):
        parameters = {(case.kernel, case.parameter) for section in kernels for case in self.cases(section)}
        named = [(page.name, *match.groups()) for page in sorted((root / "docs").glob("*.md")) for match in re.finditer(
            r"`bench/run --only (\w+)`, (?:row \*|shape `)([^*`]+)", page.read_text(encoding="utf-8"))]
        self.assertGreater(len(named), 2)
        self.assertEqual([name for name in named if name[1:] not in parameters], [])


if __name__ == "__main__":
    unittest.main()
