#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What layers.py says of small trees: it refuses what the table does not say, and nothing else."""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import layers  # noqa: E402

TABLE = """# A
## Folders
| folder | its invariant | may include |
|---|---|---|
| `include/strata/` | . | `detail/` |
| `include/strata/detail/` | . | each other |
| `src/base/` | . | nothing |
| `src/os/` | . | base |
| `src/launch/` | . | os |
| `src/net/` | . | os, and of launch where nodes are (`address.hpp`) |
| `src/net/words/` | . | nothing |
"""
FILES = {"include/strata/a.hpp": "", "include/strata/detail/b.hpp": "", "src/base/c.hpp": "", "src/os/d.hpp": "",
         "src/launch/address.hpp": '#include "os/d.hpp"', "src/launch/job.hpp": "", "src/net/words/e.hpp": "",
         "src/net/tcp/f.hpp": "", "src/net/g.hpp": ""}
CASES = [
    ({"src/net/g.hpp": '#include <vector>\n#include "launch/address.hpp"\n#include "net/words/e.hpp"\n#include "strata/detail/b.hpp"'}, ""),
    ({"src/net/tcp/f.hpp": '#include "net/g.hpp"\n#include "base/c.hpp"'}, ""),
    ({"src/os/d.hpp": '#include "launch/job.hpp"'}, "src/os/d.hpp:1: includes src/launch/job.hpp"),
    ({"src/net/g.hpp": '\n#include "launch/job.hpp"'}, "src/net/g.hpp:2: includes src/launch/job.hpp"),
    ({"src/net/words/e.hpp": '#include "net/g.hpp"'}, "src/net/words/e.hpp:1: includes src/net/g.hpp"),
    ({"include/strata/detail/b.hpp": '#include "strata/a.hpp"'}, "include/strata/detail/b.hpp:1: includes include/strata/a.hpp"),
    ({"include/strata/a.hpp": '#include "base/c.hpp"'}, "include/strata/a.hpp:1: includes src/base/c.hpp"),
    ({"src/new/h.hpp": '#include "base/c.hpp"'}, "src/new/h.hpp:1: src/new/ has no row"),
    ({"src/os/d.hpp": '#include "zlib.h"'}, 'src/os/d.hpp:1: there is no "zlib.h"'),
    ({"src/net/tcp/f.hpp": '#include "net/g.hpp"', "src/net/g.hpp": '#include "net/tcp/f.hpp"'}, "in a circle: src/net/g.hpp:1"),
]

for changed, expected in CASES:
    with tempfile.TemporaryDirectory(prefix="strata-layers-") as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        for name, text in ({layers.TABLE: TABLE} | FILES | changed).items():
            file = pathlib.Path(folder).resolve() / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        status = layers.main(pathlib.Path(folder).resolve())
    if status != bool(expected) or expected not in said.getvalue():
        sys.exit("%s: expected '%s', got %d: %s" % (changed, expected, status, said.getvalue()))
