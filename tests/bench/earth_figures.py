#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""earth_figures.py BUILD: bench/earth/run --quick with the programs in BUILD, and whether all that its page speaks of is
written. Numbers are no matter here; they only have to be there."""

import csv
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
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
svg = "{http://www.w3.org/2000/svg}"


class Files(unittest.TestCase):
    def test_every_chart_and_table_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([root / "bench" / "earth" / "run", "--quick", "--no-build", "--build-dir", build,
                                   "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            out = pathlib.Path(folder)
            page = (out / "earth.md").read_text(encoding="utf-8")
            for name, columns in tables.items():
                with self.subTest(name):
                    self.check(out / "figures", name, columns)
            expected = {"figures/earth_%s.%s" % (n, kind) for n in tables for kind in ("csv", "svg")}
            self.assertEqual(set(re.findall(r"\]\((.*?)\)", page)), expected)
            self.assertEqual({str(f.relative_to(out)) for f in out.rglob("*.*")}, expected | {"earth.md"})

    def check(self, figures, name, columns):
        with open(figures / ("earth_%s.csv" % name), encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(sorted(tuple(r[c] for c in columns) for r in rows),
                         sorted(itertools.product(*columns.values())))
        for row in rows:
            for value in set(row) - set(columns):
                self.assertGreater(float(row[value]), 0, row)
        chart = xml.etree.ElementTree.parse(figures / ("earth_%s.svg" % name)).getroot()
        self.assertEqual(chart.tag, svg + "svg")
        # One bar, or one point, for each row.
        marks = chart.findall(svg + "circle") + chart.findall(svg + "rect")[1:]
        self.assertEqual(len(marks), len(rows))


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
