# SPDX-License-Identifier: Apache-2.0
"""Brings the release build up to date."""

import subprocess
import sys


class Failed(Exception):
    pass


def _run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed("building failed: %s\n%s" % (" ".join(command), done.stdout[-4000:]))


def ensure(root, folder, several_nodes=False, targets=None):
    """With targets, these and nothing else; of those, what the machine has no library for is left out."""
    print("building what is not up to date in %s: minutes, the first time" % folder, file=sys.stderr)
    if not (folder / "CMakeCache.txt").exists():
        _run(["cmake", "-S", str(root), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"])
    _run(["cmake", str(folder), "-DSTRATA_BUILD_BENCH=ON"])
    if targets is not None:
        known = subprocess.run(["cmake", "--build", str(folder), "--target", "help"], stdout=subprocess.PIPE,
                               text=True).stdout
        known = {line.split(":")[0].removeprefix("... ").split(" ")[0] for line in known.splitlines()}
        _run(["cmake", "--build", str(folder), "--target"] + [t for t in targets if t in known])
        return
    # uts and align are measured as the applications they are.
    _run(["cmake", "--build", str(folder), "--target", "benchmarks", "uts"] +
         (["strata_command", "fib", "nqueens"] if several_nodes else []))
    if (root / "apps" / "align" / "CMakeLists.txt").exists():
        _run(["cmake", "--build", str(folder), "--target", "align"])
