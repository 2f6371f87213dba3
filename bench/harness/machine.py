# SPDX-License-Identifier: Apache-2.0
"""What the figures were measured on, without names of hosts or people."""

import functools
import os
import platform
import re
import subprocess
import sys
import time


def _cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _memory_gib():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(re.search(r"MemTotal:\s+(\d+)", f.read()).group(1)) / (1 << 20)


def _cache(folder, key):
    with open(folder / "CMakeCache.txt", encoding="utf-8") as f:
        found = re.search(r"^%s:\w+=(.*)$" % re.escape(key), f.read(), re.M)
    return found.group(1) if found else ""


def _virtual():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return "hypervisor" in f.read()


@functools.lru_cache(maxsize=None)
def _other_load():
    """Threads that run or want to, beside this one, on average of half a second. The system's load average still tells of
    the thousands of threads of a benchmark that has ended."""
    others = []
    for _ in range(50):
        time.sleep(0.01)
        with open("/proc/stat", encoding="ascii") as f:
            others.append(int(re.search(r"^procs_running (\d+)$", f.read(), re.M).group(1)) - 1)
    return sum(others) / len(others)


def describe(folder):
    compiler = _cache(folder, "CMAKE_CXX_COMPILER") or "c++"
    version = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
    flags = " ".join(filter(None, [_cache(folder, "CMAKE_CXX_FLAGS"), _cache(folder, "CMAKE_CXX_FLAGS_RELEASE")]))
    busy = _other_load()
    realtime = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    return {
        "processor": "%s, %d cores%s" % (_cpu_model(), len(os.sched_getaffinity(0)),
                                         " (virtual machine)" if _virtual() else ""),
        "memory": "%.0f GiB" % _memory_gib(),
        "system": "Linux %s, %s" % (re.match(r"\d+\.\d+", platform.release()).group(0), _distribution()),
        "compiler": version[0] if version else compiler,
        "flags": "%s (%s)" % (flags, _cache(folder, "CMAKE_BUILD_TYPE")),
        "other load": "%s%s" % ("none" if busy <= 0.5 else "%.1f runnable threads on average" % busy,
                                "; measured with real-time priority (chrt -f), ahead of it" if realtime else ""),
    }


def _distribution():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return "unknown distribution"


def warn_if_busy():
    load = _other_load()
    if load > 0.5 and os.sched_getscheduler(0) == os.SCHED_OTHER:
        print("%s: the machine is busy (load %.1f); wait, or run this under chrt -f 20" % (sys.argv[0], load), file=sys.stderr)
