#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""side_by_side.py COUNT PROGRAM ARGS...: runs COUNT copies of a program at once, each on a processor of its own.

Prints the answer of the slowest. What the copies need more than one alone, the machine takes from programs that share
nothing: no parallel program can be expected to do better."""

import json
import os
import subprocess
import sys

count, command = int(sys.argv[1]), sys.argv[2:]
processors = sorted(os.sched_getaffinity(0))
if len(processors) < count:
    sys.exit("side_by_side.py: %d copies on %d processors" % (count, len(processors)))


def keep_to(processor):
    return lambda: os.sched_setaffinity(0, {processor})


copies = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=keep_to(p))
          for p in processors[:count]]
outputs = [c.communicate()[0] for c in copies]
if any(c.returncode != 0 for c in copies):
    sys.exit("side_by_side.py: a copy of %s has failed" % command[0])
print(max((o.splitlines()[-1] for o in outputs), key=lambda line: json.loads(line)["seconds"]))
