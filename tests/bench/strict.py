#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strict.py: bench/mapview/run and bench/bear/run judge their bars, and with --strict end with 1 where one is missed. What they
would measure is given to them."""

import contextlib
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

    def test_of_bear(self):
        module = written.loaded(root / "bench" / "bear" / "run")
        patch = unittest.mock.patch.object(module.charts, "lines", lambda *_: "")
        patch.start()
        self.addCleanup(patch.stop)
        patch = unittest.mock.patch.object(module.cores, "of", lambda given: unittest.mock.Mock(words=lambda: ""))
        patch.start()
        self.addCleanup(patch.stop)

        def with_(barrier=0.5, fork=0.3, to_locked=0.99, least=0.9):
            ratios = {"barrier": barrier, "fork": fork}
            systems = [*module.policies.values(), module.kernel]
            return {
                "accepted": ({name: word for word, name in module.policies.items()}, {}),
                "distribution": [], "idle": [], "threads": [],
                "radix": [{"workers": 2, "sync": sync, "system": s, "radix_bits": bits, "ms": "1",
                           "to_nptl": "1" if s == module.kernel else str(ratios[sync] if bits == 5 else 0.2)}
                          for sync in module.syncs for s in systems for bits in module.radices],
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


if __name__ == "__main__":
    unittest.main()
