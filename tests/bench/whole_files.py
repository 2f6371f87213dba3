#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""whole_files.py: the commands of bench/ find out before they measure whether they can write, and where writing fails
afterwards, what was there stays; what a program does wrong is told. Nothing is built or measured."""

import contextlib
import io
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(root / "bench"))

from harness import build, experiment, files, judge, measure, report  # noqa: E402
from messages import system_calls  # noqa: E402

older, longer = "older\n", "newer, and longer\n" * 100


@contextlib.contextmanager
def files_of_at_most(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Commands(unittest.TestCase):
    def test_look_at_the_folder_first(self):
        for name, where in [("earth", "/proc/x"), ("bear", "/proc/x"), ("messages", "/proc/x"), ("mapview", "/proc/x"),
                            ("threads", "/proc/x/figures/table.md")]:
            with self.subTest(name), tempfile.TemporaryDirectory() as empty:
                # What it measured would have to be in this folder.
                done = subprocess.run([sys.executable, root / "bench" / name / "run", "--quick", "--no-build", "--build-dir",
                                       empty, "--out", where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(done.stderr, "bench/%s/run: no file can be written in /proc/x/figures: "
                                              "No such file or directory\n" % name)

    def test_take_paths_from_where_they_are_called(self):
        with tempfile.TemporaryDirectory() as empty:
            pathlib.Path(empty, "file").touch()
            done = subprocess.run([sys.executable, root / "bench" / "bear" / "run", "--quick", "--no-build", "--build-dir", "x",
                                   "--out", "file"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=empty)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr, "bench/bear/run: no file can be written in %s/file/figures: Not a directory\n" %
                             pathlib.Path(empty).resolve())

    def test_say_in_a_line_what_is_missing(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([sys.executable, root / "bench" / "bear" / "run", "--quick", "--no-build", "--build-dir", empty,
                                   "--out", empty], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.splitlines()[-1],
                         "bench/bear/run: %s/bench/cores_share: No such file or directory; without --no-build what is missing "
                         "is built" % empty)
        self.assertNotIn("Traceback", done.stderr)

    def test_say_that_they_build(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, \
                unittest.mock.patch.object(build, "_run"):
            build.ensure(root, pathlib.Path(folder))
        self.assertRegex(said.getvalue(), "building .*%s: minutes, the first time\n" % folder)

    def test_refuse_options_that_contradict_before_they_build(self):
        done = subprocess.run([sys.executable, root / "bench" / "run", "--nodes", "--only", "fib"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--only: not allowed with argument --nodes", done.stderr)
        self.assertNotIn("building", done.stderr)


class Answers(unittest.TestCase):
    def test_that_are_none_are_told_in_a_line(self):
        for text in ["", "no JSON\n"]:
            command = [sys.executable, "-c", "print(%r, end='')" % text]
            with self.subTest(text), self.assertRaisesRegex(measure.Failed, "no JSON on the last line .*python"):
                experiment.answer(command)
        self.assertEqual(experiment.answer([sys.executable, "-c", "print('text\\n{\"ok\": true}')"]), {"ok": True})


class SystemCalls(unittest.TestCase):
    def test_that_have_no_end_end_with_all_that_was_started(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "strace").write_text("#!/bin/sh\nsleep 100 >%s/fifo &\nwait\n" % folder, encoding="utf-8")
            pathlib.Path(folder, "strace").chmod(0o755)
            os.mkfifo(folder + "/fifo")
            reading = os.open(folder + "/fifo", os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reading)
            with unittest.mock.patch.dict(os.environ, PATH=folder + ":" + os.environ["PATH"]), \
                    self.assertRaises(subprocess.TimeoutExpired):
                system_calls.calls(["true"], limit_s=1)
            os.set_blocking(reading, True)
            self.assertEqual(os.read(reading, 1), b"")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "page.md"
        self.path.write_text(older, encoding="utf-8")

    def test_stay_where_there_is_no_room(self):
        writers = {
            "a page": lambda: files.write_whole(self.path, longer),
            "a table": lambda: experiment.write_csv(self.path, [{"what": longer}]),
            "a section": lambda: report.write(self.path, {}, [judge.Bar(longer)], {}, "", "bench"),
        }
        for name, write in writers.items():
            with self.subTest(name):
                with files_of_at_most(64), self.assertRaisesRegex(build.Failed, "page.md cannot be written: File too large"):
                    write()
                self.assertEqual(self.path.read_text(encoding="utf-8"), older)
                self.assertEqual(list(self.folder.iterdir()), [self.path])

    def test_are_replaced_where_there_is(self):
        link = self.folder / "link.md"
        link.symlink_to("page.md")
        files.write_whole(link, longer)
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.path.read_text(encoding="utf-8"), longer)
        self.assertEqual(sorted(self.folder.iterdir()), [link, self.path])

    def test_that_are_none_are_written_to(self):
        files.write_whole(pathlib.Path("/dev/null"), longer)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())

    def test_are_tried_where_they_will_be(self):
        inner = self.folder / "a" / "b"
        files.prepare(inner)
        self.assertEqual(list(inner.iterdir()), [])
        with files_of_at_most(64), self.assertRaisesRegex(build.Failed, "no file can be written in .*: File too large"):
            files.prepare(inner)
        self.assertEqual(list(inner.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
