#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages_figure.py rows | files BUILD: what bench/messages/run measures, and what it writes.

rows: with everything installed, every row of pCoR's Figure 3 is measured, each in its own way. files: one small
measurement with the programs in BUILD, and what stands in the folder afterwards. Numbers are no matter here."""

import csv
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import written  # noqa: E402

root = pathlib.Path(__file__).resolve().parent.parent.parent
command = root / "bench" / "messages" / "run"

waits = ["polling", "blocking", "adaptive"]
ours = ["Strata, " + w for w in waits] + ["Strata, %s, handed over" % w for w in waits]
bare = ["bare, " + w for w in waits]
zero_copy = [name + ", zero copy" for name in bare]  # sockets have none: bench/messages/run says why
ucx = ["UCX's own", "UCX's own, tags"]
rendezvous = ["UCX's own, rendezvous"]
systems = {
    "shm": ours + bare + zero_copy + ucx + ["Open MPI", "MPICH"],
    "tcp": ours + bare + ucx + ["Open MPI"],
    "udp": ours + bare,
    "ucx": ours + ucx + rendezvous + [name + ", blocking" for name in ucx + rendezvous] + ["Open MPI"],
}
modes = ["latency", "stream"]
sizes = [1, 64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304]


class Rows(unittest.TestCase):
    def setUp(self):
        self.run_module = written.loaded(command)

    def planned(self, *words):
        module = self.run_module
        with unittest.mock.patch.object(sys, "argv", ["run", *words]), \
                unittest.mock.patch.object(module, "available", lambda given: given.transports), \
                unittest.mock.patch.object(module.mpi, "knows_ucx", lambda: True), \
                unittest.mock.patch.object(shutil, "which", lambda name: "/usr/bin/" + name):
            return module.exchange_commands(module.arguments())

    def test_every_row_is_measured(self):
        expected = {(t, m, s, b) for t in systems for m, s, b in itertools.product(modes, systems[t], sizes)}
        self.assertEqual(set(self.planned()), expected)

    def test_no_two_rows_are_the_same_measurement(self):
        rows = {}
        for (t, mode, system, size), words in self.planned().items():
            rows.setdefault((t, mode, size, tuple(map(str, words))), []).append(system)
        self.assertEqual([same for same in rows.values() if len(same) > 1], [])

    def test_the_quick_way_leaves_out_sizes_alone(self):
        expected = {(t, m, s, b) for t in systems for m, s, b in itertools.product(modes, systems[t], [64, 4096, 1048576])}
        self.assertEqual(set(self.planned("--quick")), expected)

    def test_chosen_transports_and_sizes(self):
        found = self.planned("--transports", "udp,shm", "--sizes", "4096,1")
        self.assertEqual({(t, b) for t, _, _, b in found}, {(t, b) for t in ["shm", "udp"] for b in [1, 4096]})


class Files(unittest.TestCase):
    build = None

    def test_tables_csv_and_charts(self):
        with tempfile.TemporaryDirectory(prefix="strata-messages-") as folder:
            words = ["--no-build", "--build-dir", self.build, "--out", folder, "--quick", "--sizes", "1", "--transports", "udp",
                     "--patience", "0"]
            done = subprocess.run([sys.executable, command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.look_at(pathlib.Path(folder))

    def look_at(self, folder):
        figures = folder / "figures"
        self.assertEqual(sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
                         ["figures/messages_disturbed.csv", "figures/messages_exchanges.csv", "figures/messages_latency.svg",
                          "figures/messages_stream.svg", "messages-figures.md"])
        with open(figures / "messages_exchanges.csv", encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(list(rows[0]), ["transport", "mode", "system", "bytes", "microseconds", "megabytes_per_second"])
        self.assertEqual(sorted((r["mode"], r["system"]) for r in rows), sorted(itertools.product(modes, systems["udp"])))
        for r in rows:
            self.assertEqual((r["transport"], r["bytes"]), ("udp", "1"))
            self.assertGreater(float(r["microseconds"]), 0, r)
            self.assertGreater(float(r["megabytes_per_second"]), 0, r)
        with open(figures / "messages_disturbed.csv", encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(list(rows[0]), ["transport", "reception", "what", "microseconds", "percent_of_a_core"])
        whats = ["computes in pieces of %d µs" % us for us in (1, 10, 100)]
        whats += ["a message every %d µs" % us for us in (20, 1000)]
        self.assertEqual(sorted((r["what"], r["reception"]) for r in rows), sorted(itertools.product(whats, waits)))
        for mode in modes:
            svg = figures / ("messages_%s.svg" % mode)
            texts = [t.text for t in xml.etree.ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
            self.assertEqual([s for s in ["udp", *systems["udp"]] if s not in texts], [], svg)
        page = (folder / "messages-figures.md").read_text(encoding="utf-8")
        self.assertIn("`bench/messages/run --quick --transports udp --sizes 1`", page)
        for s in systems["udp"]:  # one table for each mode
            self.assertEqual(page.count("\n| %s | " % s), len(modes), s)


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or [""]
    if what == "files" and len(rest) == 1:
        Files.build = pathlib.Path(rest[0]).resolve()
        chosen = Files
    elif what == "rows" and not rest:
        chosen = Rows
    else:
        sys.exit("usage: messages_figure.py rows | files BUILD")
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(chosen))
    sys.exit(0 if result.wasSuccessful() else 1)
