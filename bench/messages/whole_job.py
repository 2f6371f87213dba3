#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""whole_job.py cpu|wall COMMAND...: what a command costs with all processes that it starts, as one line of JSON."""

import json
import resource
import subprocess
import sys
import time

began = time.monotonic()
done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
wall = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"seconds": wall if sys.argv[1] == "wall" else used.ru_utime + used.ru_stime, "units": 1,
                  "ok": done.returncode == 0}))
