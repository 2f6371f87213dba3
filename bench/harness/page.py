# SPDX-License-Identifier: Apache-2.0
"""How the commands begin that write a page and its figures."""

from harness import build, files, machine


def begin(root, given, **built):
    """For a command with --out, --build-dir and --no-build: the folder for its figures, in which files can be written. `built`: see
    build.ensure()."""
    figures = given.out / "figures"
    files.prepare(figures)
    if not given.no_build:
        build.ensure(root, given.build_dir, **built)
    machine.warn_if_busy()
    return figures
