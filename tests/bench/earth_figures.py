#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""earth_figures.py BUILD: bench/earth/run --quick with the programs in BUILD, and whether all that its page speaks of is
written. Numbers are no matter here; they only have to be there."""

import itertools
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "bench"))

from harness import charts  # noqa: E402

systems = ["RTS 1.2", "RTS 2.0, 1 EM", "RTS 2.0, 2 EMs"]
programs = ["fib(20)", "nqueens(8)", "nqueens(8), throttled", "align, random 40K against 400K"]
receptions = ["adaptive", "blocking", "watchdog", "polling"]
# name -> columns that say what was measured, with all that they have to hold
tables = {
    "speedup": {"program": programs, "system": systems, "nodes": ["1", "2"]},
    "get": {"reception": receptions, "transport": ["tcp", "shm"]},
    "polling": {"mechanism": ["recv", "select", "poll", "epoll"],
                "connections": ["1", "2", "4", "8", "16", "32", "64"]},
    "buffers": {"io": ["non-blocking", "blocking"], "buffer_bytes": ["4096", "1048576"]},
}
svg = written.svg


class Files(unittest.TestCase):
    def test_every_chart_and_table_is_written(self):
        written.run(self, [root / "bench" / "earth" / "run", "--quick", "--no-build", "--build-dir", build], self.check)

    def check(self, out):
        written.files(self, out, "earth.md", ["earth_" + name for name in tables])
        for name, columns in tables.items():
            with self.subTest(name):
                rows = written.table(self, out, "earth_" + name, columns, itertools.product(*columns.values()))
                for row in rows:
                    for value in set(row) - set(columns):
                        self.assertGreater(float(row[value]), 0, row)
                # One bar, or one point, for each row.
                self.assertEqual(written.marks(self, out, "earth_" + name), len(rows))


class Committed(unittest.TestCase):
    """What stands in docs/ has the rows that the command writes now."""

    def test_the_rows_are_those_of_the_command(self):
        module = written.loaded(root / "bench" / "earth" / "run")
        with unittest.mock.patch.object(sys, "argv", ["run"]):
            given = module.arguments()
        # Measures nothing.
        module.medians = lambda commands, reps, whole=False: dict.fromkeys(commands, 1.0)
        with tempfile.TemporaryDirectory() as scratch:
            planned = {"speedup": module.speedups(given, scratch), "get": module.gets(given), "polling": module.polling(given),
                       "buffers": module.buffers(given)}
        self.assertEqual(set(planned), set(tables))
        for name, rows in planned.items():
            with self.subTest(name):
                keys = [tuple(str(row[column]) for column in tables[name]) for row in rows]
                written.table(self, root / "docs", "earth_" + name, list(tables[name]), keys,
                              "docs/figures/earth_%s.csv is older than bench/earth/run: run that again" % name)


class Bars(unittest.TestCase):
    def lengths(self, *values):
        chart = xml.etree.ElementTree.fromstring(charts.bars("t", "us", [("g", [(str(v), v) for v in values])]))
        return [float(r.get("width")) for r in chart.findall(svg + "rect")[1:]]

    def test_grow_alike_with_each_decade(self):
        a, b, c = self.lengths(2, 20, 200)
        self.assertAlmostEqual(b - a, c - b, delta=0.2)
        self.assertGreater(b - a, 50)

    def test_have_a_length_whatever_the_values(self):
        for values in [(1,), (10, 100), (0.001, 1000), (5, 5)]:
            self.assertGreater(min(self.lengths(*values)), 1, values)


if __name__ == "__main__":
    build = sys.argv.pop()
    unittest.main(verbosity=2)
