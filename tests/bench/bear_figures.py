#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bear_figures.py BUILD: bench/bear/run --quick with the programs in BUILD, and whether all that its page speaks of is
written, and ratios are those of the times beside them. Which times is no matter here."""

import itertools
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent
policies = ["rotator (LB2)", "locked (LB1)", "steal"]
kernel = "NPTL"
workers, syncs = ["1", "2"], ["fork", "barrier"]
radices = [str(b) for b in range(1, 11)]
threads = [str(2**t) for t in range(1, 9)]
# name -> columns that say what was measured, and all that they have to hold
tables = {
    "distribution": (["workers", "system", "threads"], itertools.product(workers, policies + [kernel], threads)),
    "idle": (["workers", "system", "worker"],
             [(w, s, worker) for w in workers for s in policies for worker in map(str, range(int(w)))]),
    "radix": (["workers", "sync", "system", "radix_bits"],
              itertools.product(workers, syncs, policies + [kernel], radices)),
    "radix_to_locked": (["keys_log2", "sync", "radix_bits"], itertools.product(["16"], syncs, radices)),
    "threads": (["workers", "sync", "system", "threads"],
                itertools.product(workers, syncs, policies + [kernel], threads)),
}


class Files(unittest.TestCase):
    def test_every_chart_and_table_is_written(self):
        written.run(self, [root / "bench" / "bear" / "run", "--quick", "--no-build", "--patience", "0", "--build-dir", build],
                    self.check)

    def check(self, out):
        written.files(self, out, "bear.md", ["bear_" + name for name in tables])
        rows, marks = {}, {}
        for name, (columns, keys) in tables.items():
            rows[name] = written.table(self, out, "bear_" + name, columns, keys)
            marks[name] = written.marks(self, out, "bear_" + name)
        for name in ["radix", "radix_to_locked", "threads"]:
            self.assertEqual(marks[name], len(rows[name]), name)
        # Once more without the kernel's threads, and with most workers alone.
        self.assertEqual(marks["distribution"], sum(1 if r["system"] == kernel else 2 for r in rows["distribution"]))
        self.assertEqual(marks["idle"], sum(r["workers"] == workers[-1] for r in rows["idle"]))

        for name, x in [("radix", "radix_bits"), ("threads", "threads")]:
            of = {(r["workers"], r["sync"], r["system"], r[x]): float(r["ms"]) for r in rows[name]}
            for r in rows[name]:
                self.close(r["to_nptl"], float(r["ms"]) / of[r["workers"], r["sync"], kernel, r[x]], r)
        for r in rows["radix_to_locked"]:
            self.close(r["ratio"], float(r["ms"]) / float(r["locked_ms"]), r)
        for r in rows["distribution"]:
            self.assertGreater(float(r["begun_us"]), 0, r)

    def close(self, said, ratio, row):
        """One turn was made. What is written is rounded."""
        self.assertAlmostEqual(float(said), ratio, delta=1e-4 + 0.02 * ratio, msg=row)


if __name__ == "__main__":
    build = sys.argv.pop()
    unittest.main(verbosity=2)
