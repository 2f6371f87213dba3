#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lost_datagrams.py PROGRAM: messages_raw_datagrams counts what it has lost, and fails. Its receiver is stopped while the
other process sends many times what a receive buffer holds, with a window that does not hold it back."""

import os
import pathlib
import re
import signal
import subprocess
import sys

count = 20_000  # times 64 KiB
tries = 20


def child_of(process):
    """Of the one that receives; None: it has ended."""
    children = pathlib.Path("/proc/%d/task/%d/children" % (process.pid, process.pid))
    while process.poll() is None:
        try:
            if found := children.read_text(encoding="ascii").split():
                return int(found[0])
        except OSError:
            pass
    return None


def wait_until_sent(child):
    """Or has ended: its parent, which is stopped, leaves a zombie of it. It hardly sleeps before: what is lost does not hold
    it back."""
    state = pathlib.Path("/proc/%d/stat" % child)
    try:
        while state.read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] not in "SZX":
            os.sched_yield()
    except OSError:
        pass  # both have ended


def attempt(program):
    """What it said in the end; None: it had received everything before it was stopped."""
    process = subprocess.Popen([program, "sleeping-stream", "65507", str(count), str(count)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        child = child_of(process)
        process.send_signal(signal.SIGSTOP)
        if child is not None:
            wait_until_sent(child)
        process.send_signal(signal.SIGCONT)
        said = process.communicate()[1]
    finally:
        process.kill()  # also one that is stopped; no matter where it has ended
        process.wait()
    return None if process.returncode == 0 else (process.returncode, said)


def main():
    for _ in range(tries):
        found = attempt(sys.argv[1])
        if found is None:
            continue
        code, said = found
        lost = re.search(r"nothing has come for 10 s: (\d+) datagrams to this process were lost, 0 to the other", said)
        if code != 2 or lost is None or not 0 < int(lost[1]) < count:
            sys.exit("code %d: %s" % (code, said))
        return
    sys.exit("the receiver was never stopped in time")


main()
