# SPDX-License-Identifier: Apache-2.0
"""What is written after minutes or hours of measuring: whether it can be is found out before, and a file is wholly the older
one or wholly the new one, whatever happens meanwhile."""

import os
import tempfile

from harness import build


def prepare(folder):
    """Makes the folder where it is missing, and writes in it for a moment."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".strata-bench-") as f:
            f.write(bytes(4096))
    except OSError as e:
        raise build.Failed("no file can be written in %s: %s" % (folder, e.strerror)) from e


def write_whole(path, text):
    """Keeps what is there until all of the text is beside it. What is no file, such as a terminal, is written to."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()  # a link stays one
    temporary = path.with_name(".%s.%d.new" % (path.name, os.getpid()))
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException as e:
        temporary.unlink(missing_ok=True)
        if isinstance(e, OSError):
            raise build.Failed("%s cannot be written: %s" % (path, e.strerror)) from e
        raise
