# SPDX-License-Identifier: Apache-2.0
"""A command of bench/, and what it has written: a page, and beside it charts with their tables. For unittest."""

import csv
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree

svg = "{http://www.w3.org/2000/svg}"


def loaded(command):
    """As a module."""
    loader = importlib.machinery.SourceFileLoader("command", str(command))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("command", loader))
    loader.exec_module(module)
    return module


def run(test, command, check):
    """check(folder) of what command writes with --out."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "--out", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        check(pathlib.Path(folder))


def files(test, out, page, names):
    """A chart and a table of each name, all of them named by the page, and no others."""
    expected = {"figures/%s.%s" % (n, kind) for n in names for kind in ("csv", "svg")}
    test.assertEqual(set(re.findall(r"\]\((figures/.*?)\)", (out / page).read_text(encoding="utf-8"))), expected)
    test.assertEqual({str(f.relative_to(out)) for f in out.rglob("*.*")}, expected | {page})


def table(test, out, name, columns, keys, otherwise=None):
    """The rows, which must be one for each of keys: what `columns` hold. otherwise: what to do where they are not."""
    with open(out / "figures" / (name + ".csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    test.assertEqual(sorted(tuple(r[c] for c in columns) for r in rows), sorted(keys), otherwise)
    return rows


def marks(test, out, name):
    """How many bars or points the chart has."""
    chart = xml.etree.ElementTree.parse(out / "figures" / (name + ".svg")).getroot()
    test.assertEqual(chart.tag, svg + "svg")
    return len(chart.findall(svg + "circle") + chart.findall(svg + "rect")[1:])
