# SPDX-License-Identifier: Apache-2.0
"""How every command of this folder starts and ends."""

import os
import pathlib
import sys

from harness import build, experiment, measure


_caller = pathlib.Path.cwd()  # run() leaves it


def path(text):
    """What a caller means by a path on the command line. For argparse."""
    return _caller / text


def run(name, root, main):
    """Ends with what main() returns; where something else goes wrong than a measurement, with one line and 2."""
    os.chdir(root)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (build.Failed, measure.Failed, experiment.Failed) as e:
        why = str(e)
    except OSError as e:
        why = "%s: %s" % (e.filename, e.strerror) if e.filename else str(e)
        if isinstance(e, FileNotFoundError) and "--no-build" in sys.argv:
            why += "; without --no-build what is missing is built"
    print("%s: %s" % (name, why), file=sys.stderr)
    sys.exit(2)
