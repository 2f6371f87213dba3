# SPDX-License-Identifier: Apache-2.0
"""The options that several commands of this folder take, with the same meaning and words."""

from harness import entry


def add_common(parser, root, reps):
    parser.add_argument("--reps", type=int, metavar="N", default=reps, help="repetitions of each measurement [%(default)s]")
    parser.add_argument("--build-dir", metavar="DIR", type=entry.path, default=root / "build" / "release",
                        help="build folder [build/release]")


def add_no_build(parser):
    parser.add_argument("--no-build", action="store_true", help="measure what is in the build folder, up to date or not")


def add_strict(parser):
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a bar is missed, or what it is about was not measured")


def add_workers(parser):
    """A text, for numbers()."""
    parser.add_argument("--workers", metavar="LIST", default="1,2", help="worker counts [%(default)s]")


def numbers(parser, option, text, example="1,2,4"):
    """What such an option lists, the least first and each once. Ends the command where that is no list of numbers."""
    try:
        return sorted({int(n) for n in text.split(",")})
    except ValueError:
        parser.error("%s: '%s' is not a list of numbers such as %s" % (option, text, example))
