#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What UCX's messages cost with its thread-safe worker, by ucx_perftest (Debian: ucx-utils).

ucx.py shm|tcp latency|stream BYTES [tags] [rendezvous] [sleeping]: one line of JSON, as the other programs here print it. Latency is
the median of half round trips. Active messages are left where they arrived; those with tags are matched, and copied into a
buffer, as MPI's are and ours. By rendezvous every message, of whatever size, goes from buffer to buffer as far as its devices
can do that, UCX's zero copy. Who waits spins, or sleeps on the event descriptor of its worker."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    transport, mode, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    words = set(sys.argv[4:])
    known = {"tags", "rendezvous", "sleeping"}
    if words - known:
        sys.exit("ucx.py: what is %s? %s are known" % (" ".join(sorted(words - known)), ", ".join(sorted(known))))
    kind = "tag" if "tags" in words else "ucp_am"
    cores = sorted(os.sched_getaffinity(0))
    where = {"shm": "posix,sysv,cma", "tcp": "tcp"}[transport]
    env = dict(os.environ, UCX_TLS=where, UCX_LOG_LEVEL="error")
    if transport == "tcp":
        env["UCX_NET_DEVICES"] = "lo"
    if "rendezvous" in words:
        env["UCX_RNDV_THRESH"] = "0"
    program = shutil.which("ucx_perftest")
    most = 100_000 if mode == "latency" else 1_000_000
    count = max(min((1 << 30) // size, most), 500)
    if transport == "tcp":
        count = max(count // 10, 200)
    if "rendezvous" in words:  # a small one takes a hundred times as long as others
        count = min(count, 5_000)
    if "sleeping" in words and mode == "latency":
        count = min(count, 5_000)
    how = ["-E", "sleep" if "sleeping" in words else "poll"]
    port = str(free_port())
    server = subprocess.Popen([program, "-p", port, "-c", str(cores[-1]), *how], env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        command = [program, "-p", port, "127.0.0.1", "-c", str(cores[0]), "-t",
                   kind + ("_lat" if mode == "latency" else "_bw"), "-s", str(size), "-n", str(count), "-w",
                   str(count // 10), "-M", "multi", "-v", *how]
        for _ in range(50):  # until the server listens
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  timeout=60)
            if done.returncode == 0:
                break
            time.sleep(0.05)
        lines = done.stdout.strip().splitlines()
        # A long run prints values more than once.
        head, values = next(line for line in lines if "overall_mr" in line), lines[-1]
        found = dict(zip(head.split(","), map(float, values.split(","))))
    finally:
        server.kill()
        server.wait()
    microseconds = found["50.0_percentile_lat"] if mode == "latency" else 1e6 / found["overall_mr"]
    print(json.dumps({"kernel": "messages", "impl": "ucx_" + transport, "parameter": "%s %d" % (mode, size),
                      "workers": 2, "seconds": microseconds * 1e-6 * count, "units": count, "ok": True}))


main()
