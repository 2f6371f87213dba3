#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strict.py: bench/mapview/run and bench/bear/run judge their bars, and with --strict end with 1 where one is missed. What they
would measure is given to them. And the page of bench/bear/run says of its own figures what the command says."""

import argparse
import contextlib
import csv
import io
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent


class Strict(unittest.TestCase):
    def ends_with(self, module, measured, *words):
        """measured: function -> what it returns."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as patches:
            patches.enter_context(contextlib.redirect_stdout(io.StringIO()))
            patches.enter_context(unittest.mock.patch.object(sys, "argv", ["run", "--no-build", "--out", folder, *words]))
            for where, name, value in [(module.machine, "describe", {}), (module.machine, "warn_if_busy", None),
                                       *((module, name, value) for name, value in measured.items())]:
                patches.enter_context(unittest.mock.patch.object(where, name, lambda *_, value=value: value))
            return module.main()

    def test_of_mapview(self):
        module = written.loaded(root / "bench" / "mapview" / "run")

        def with_(**milliseconds):
            of = {"loop": 160, "alone": 158, "shm": 81, "tcp": 82, "two": 80, **milliseconds}
            names = {"loop": module.loop, "alone": module.alone, "two": "one node, two workers",
                     **{way: name for name, way in module.pairs.items()}}
            return {"measure": {(names[key], side): [ms * 1e-3] * 3 for key, ms in of.items() for side in module.sides}}
        self.assertEqual(self.ends_with(module, with_(), "--strict"), 0)
        for beyond in [{"loop": 150}, {"shm": 90}, {"tcp": 90}]:
            self.assertEqual(self.ends_with(module, with_(**beyond), "--strict"), 1, beyond)
            self.assertEqual(self.ends_with(module, with_(**beyond)), 0, beyond)

    def test_of_threads_is_about_ours(self):
        module = written.loaded(root / "bench" / "threads" / "run")
        measured = {"most_threads": 1}
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(module.measure, "run_all", lambda *_: {}), \
                unittest.mock.patch.object(module.cores, "of", lambda given: None):
            bench = pathlib.Path(folder) / "bench"
            bench.mkdir()
            for name in ["nptl", "strata"]:
                with self.assertRaisesRegex(module.measure.Failed, "threads_strata is not built"):
                    self.ends_with(module, measured, "--build-dir", folder)
                (bench / ("threads_" + name)).touch()
            self.assertEqual(self.ends_with(module, measured, "--build-dir", folder, "--out", folder + "/threads.md"), 0)
            with self.assertRaises(SystemExit) as refused, contextlib.redirect_stderr(io.StringIO()):
                self.ends_with(module, measured, "--build-dir", folder, "--strict", "--workers", "1")
            self.assertEqual(refused.exception.code, 2)

    def bear(self):
        module = written.loaded(root / "bench" / "bear" / "run")
        for where, name, instead in [(module.charts, "lines", lambda *_: ""),
                                     (module.cores, "of", lambda given: unittest.mock.Mock(words=lambda: ""))]:
            patch = unittest.mock.patch.object(where, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        return module

    @staticmethod
    def of_bear(module, barrier=0.5, fork=0.3):
        """All but LB2 against LB1."""
        ratios = {"barrier": barrier, "fork": fork}
        systems = [*module.policies.values(), module.kernel]
        return {
            "accepted": ({name: word for word, name in module.policies.items()}, {}),
            "distribution": [], "idle": [], "threads": [],
            "radix": [{"workers": 2, "sync": sync, "system": s, "radix_bits": bits, "ms": "1",
                       "to_nptl": "1" if s == module.kernel else str(ratios[sync] if bits == 5 else 0.2)}
                      for sync in module.syncs for s in systems for bits in module.radices],
        }

    def test_of_bear(self):
        module = self.bear()

        def with_(to_locked=0.99, least=0.9, **ratios):
            return {
                **self.of_bear(module, **ratios),
                "to_locked": [{"keys_log2": 16, "keys": "2^16 keys", "workers": 2, "sync": sync, "system": "rotator (LB2)",
                               "radix_bits": bits, "ms": "1", "locked_ms": "1", "least": str(least), "greatest": "1.1",
                               "ratio": str(to_locked if bits == 5 else 0.9)}
                              for sync in module.syncs for bits in module.radices],
            }
        self.assertEqual(self.ends_with(module, with_(), "--strict"), 0)
        self.assertEqual(self.ends_with(module, with_(to_locked=1.01), "--strict"), 0, "the turns leave it open")
        for beyond in [{"barrier": 0.61}, {"fork": 0.41}, {"to_locked": 1.01, "least": 1.001}]:
            self.assertEqual(self.ends_with(module, with_(**beyond), "--strict"), 1, beyond)
            self.assertEqual(self.ends_with(module, with_(**beyond)), 0, beyond)
        left_out = {"accepted": ({name: word for word, name in module.policies.items()}, {"another": "unknown"})}
        self.assertEqual(self.ends_with(module, {**with_(), **left_out}, "--strict"), 1)

    def test_of_bear_takes_as_many_turns_as_tell_that_one_is_slower(self):
        module = self.bear()

        def turns(n, slower):
            """LB1 takes a second, LB2 so many times as long."""
            seconds = {module.policies["rotator"]: slower, module.policies["locked"]: 1}
            return {**self.of_bear(module), "answers": {
                (keys, sync, bits, s): [{"seconds": seconds[s]}] * n for keys in [22, module.few_keys] for sync in module.syncs
                for bits in module.radices for s in seconds}}
        self.assertEqual(self.ends_with(module, turns(11, 1.1), "--strict", "--turns", "11"), 1)
        self.assertEqual(self.ends_with(module, turns(11, 0.9), "--strict", "--turns", "11"), 0)
        for words in [["--turns", "10"], ["--quick"], ["--workers", "1"]]:
            said = io.StringIO()
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(said):
                self.ends_with(module, turns(10, 1.1), "--strict", *words)
            self.assertEqual(ended.exception.code, 2, words)
            self.assertIn("--strict", said.getvalue().splitlines()[-1])
            if words == ["--workers", "1"]:
                continue  # nothing to compare
            with self.subTest(words=words):
                self.assertEqual(self.ends_with(module, turns(10, 1.1), *words), 0)


class Page(unittest.TestCase):
    def test_of_bear_is_of_the_figures_beside_it(self):
        module = written.loaded(root / "bench" / "bear" / "run")
        given = argparse.Namespace(policies={name: word for word, name in module.policies.items()}, workers=[1, 2])
        page = set((root / "docs" / "bear.md").read_text(encoding="utf-8").split("\n"))

        def rows(name):
            with open(root / "docs" / "figures" / ("bear_%s.csv" % name), encoding="utf-8", newline="") as f:
                return [{k: int(v) if k in ("workers", "radix_bits", "threads", "keys_log2") else v for k, v in row.items()}
                        for row in csv.DictReader(f)]
        radix = rows("radix")
        parts = [module.verdicts(given, radix),
                 module.ratios_table(given, radix, "radix_bits", "radix", lambda b: "2^%d" % b),
                 module.ratios_table(given, rows("threads"), "threads", "threads", lambda t: "{:,}".format(t))]
        by_keys = {}
        for row in rows("radix_to_locked"):
            by_keys.setdefault(row["keys"], []).append(row)
        for of_keys in by_keys.values():
            parts += [module.verdicts_to_locked(of_keys), module.locked_table(of_keys)]
        self.assertEqual([line for part in parts for line in part.split("\n") if line not in page], [])


if __name__ == "__main__":
    unittest.main()
