# SPDX-License-Identifier: Apache-2.0
"""What is asked of messages between threads, measured and judged as the rest of bench/bars.json ("endpoints")."""

import pathlib
import shutil
import sys

from harness import build, cores, files, judge, machine, measure, plan, report
from messages import jobs, mpi, system_calls

here = pathlib.Path(__file__).resolve().parent
bars_file = here.parent / "bars.json"
section = "endpoints"
# As the runtime does unless told otherwise, or looking all the time.
awake = {"": [], "_polling": jobs.dispatchers["polling"]}


def _ours(impl, parameter, command, workers=2, units=1.0):
    return plan.Case(section, impl, parameter, workers, tuple(map(str, command)), answer="app", units=units)


def _theirs(impl, parameter, *command):
    return plan.Case(section, impl, parameter, 2, tuple(map(str, command)))


def _ucx(impl, transport, what, size, *words):
    if shutil.which("ucx_perftest"):
        yield _theirs(impl, "%s %d" % (what, size), sys.executable, here / "ucx.py", transport, what, size, *words)


def _latencies(given, few):
    endpoints = given.build_dir / "bench" / "messages_endpoints"
    for workers in [1, 2]:
        yield _ours("here_%d" % workers, "latency 64",
                    [endpoints, "latency", 64, 1_000_000 // few, "--strata-workers", workers], workers)
    for name, flags in awake.items():
        yield _ours("threads_shm" + name, "latency 64",
                    jobs.job(given.build_dir, "shm", "latency", 64, 200_000 // few, *flags))
    if jobs.has_ucx(given.build_dir):
        for name, flags in awake.items():
            yield _ours("threads_ucx" + name, "latency 64",
                        jobs.job(given.build_dir, "ucx", "latency", 64, 20_000 // few, *flags))
        yield from _ucx("ucx_tcp", "tcp", "latency", 64)


def _streams(given, few):
    for size in [4 << 10, 64 << 10, 1 << 20, 4 << 20]:
        parameter, count = "stream %d" % size, max((1 << 30) // size // few, 50)
        for name, flags in awake.items():
            # It sends all of them seven times.
            yield _ours("threads_shm" + name, parameter,
                        jobs.job(given.build_dir, "shm", "stream", size, max(count // 4, 32), *flags))
        yield from _ucx("ucx_shm", "shm", "stream", size)
        yield from _ucx("ucx_tags_shm", "shm", "stream", size, "tags")
        for kind in ["openmpi", "mpich"]:
            if mpi.available(kind, "shm"):
                yield _theirs(kind, parameter, sys.executable, here / "mpi.py", kind, given.build_dir / "bench", "shm", "stream",
                              size, count)


def _others(given, few):
    # It tells of half a round trip, and the ring of a whole one.
    yield _ours("threads_shm_blocking", "woken 64",
                jobs.job(given.build_dir, "shm", "latency", 64, 4_000 // few, *jobs.dispatchers["blocking"]), units=0.5)
    yield _theirs("bare_ring", "woken 64", given.build_dir / "bench" / "messages_bare_ring", "sleeping", 64, 4_000 // few)
    for transport, count in [("shm", 100_000), ("tcp", 20_000)]:
        yield _ours("threads_" + transport, "call", jobs.job(given.build_dir, transport, "call", count // few))
    yield _ours("threads_shm", "crowd", jobs.job(given.build_dir, "shm", "crowd", 5_000 // few, 100))
    if system_calls.available():
        words = jobs.job(given.build_dir, "shm", "latency", 64, "N", *jobs.dispatchers["polling"])
        yield plan.Case("system_calls", "threads_shm_polling", "latency 64", 2, tuple(map(str, (
            sys.executable, here / "system_calls.py", 1_000, 201_000, *words))), answer="app", units=1, again=False)


def cases(given):
    few = 20 if given.quick else 1
    return [*_latencies(given, few), *_streams(given, few), *_others(given, few)]


def run(given, root):
    """What the command ends with."""
    if not given.quick:
        files.prepare(given.out)
    if not given.no_build:
        build.ensure(root, given.build_dir, targets=["strata_command", "bench_messages_endpoints", "bench_messages_bare_ring",
                                                     "bench_cores_share"])
    machine.warn_if_busy()
    description = machine.describe(given.build_dir)
    decisive = set() if given.quick else judge.compared(bars_file, section)
    results = measure.run_all(cases(given), given.reps, cores.of(given), decisive)
    judged = judge.bars(bars_file, results, section)
    print(report.as_text(results, judged, description))
    if not given.quick:
        command = "bench/messages/run --bars" + (" --reps %d" % given.reps if given.reps != 3 else "") + (
            " --patience %g" % given.patience if given.patience != cores.usual_patience_s else "")
        report.write(given.out / "performance.md", results, judged, description, command, section)
        print("written: %s" % (given.out / "performance.md"))
    return judge.status(results, judged, given.strict)
