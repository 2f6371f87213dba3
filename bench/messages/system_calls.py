#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""system_calls.py FEWER MORE COMMAND...: how many system calls a command makes for each message, by strace.

COMMAND has a word N for how many round trips it makes; it is run with FEWER and with MORE, so that what all of its processes
call to start and to end does not count. One line of JSON, as the other programs here print it, but for the unit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile


def available():
    """Whether it is there, and allowed."""
    return bool(shutil.which("strace")) and subprocess.run(
        ["strace", "-f", "-c", "-o", "/dev/null", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def total(table):
    """Out of what strace -c prints. Other columns may be empty."""
    lines = table.splitlines()
    end = next(line.index("calls ") for line in lines if "calls " in line) + len("calls")
    return int(next(line for line in lines if line.endswith(" total"))[:end].split()[-1])


def calls(command, limit_s=300):
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as table:
        words = ["strace", "-f", "-c", "-o", table.name, *command]
        # In a group of their own: what strace watches does not end with it.
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as strace:
            try:
                code = strace.wait(limit_s)
            except BaseException:
                os.killpg(strace.pid, signal.SIGKILL)
                raise
        if code != 0:
            raise subprocess.CalledProcessError(code, words)
        return total(table.read())


def main():
    fewer, more, *command = sys.argv[1:]
    made = [calls([n if word == "N" else word for word in command]) for n in (fewer, more)]
    print(json.dumps({"kernel": "system_calls", "seconds": (made[1] - made[0]) / (2 * (int(more) - int(fewer))), "ok": True}))


if __name__ == "__main__":
    main()
