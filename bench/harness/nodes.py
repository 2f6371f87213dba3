# SPDX-License-Identifier: Apache-2.0
"""What is measured on several nodes: messages and operations beside their references, whole programs beside one node."""

import shutil
import subprocess

from harness import plan

kernels = ["messages", "nodes"]


def _has_ucx(bench):
    """Whether the library was built with it."""
    one = subprocess.run([bench / "messages_transport", "ucx", "latency", "64", "1"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    return one.returncode == 0


def _messages(quick, folder, root):
    bench, here = folder / "bench", root / "bench" / "messages"
    count = {"latency": "2000", "stream": "500", "sleeping": "200", "one-core": "200"}

    def case(impl, what, size, *command):
        few = (count[what],) if quick and not impl.startswith("ucx_") else ()
        # How fast memory is copied from core to core changes the most on virtual machines.
        return plan.Case("messages", impl, "%s %d" % (what, size), 2,
                         tuple(map(str, command)) + (what, str(size)) + few, again=what == "stream")

    has_ucx = _has_ucx(bench)
    # Ours first, then what it is compared with, one straight after the other.
    for what, size in [("latency", 64), ("stream", 64), ("stream", 65536), ("stream", 1048576), ("sleeping", 64),
                       ("one-core", 64)]:
        for transport, bare in [("shm", "bare_ring"), ("tcp", "raw_sockets")]:
            yield case("strata_" + transport, what, size, bench / "messages_transport", transport)
            yield case(bare, what, size, bench / ("messages_" + bare))
            if what in ("latency", "stream") and shutil.which("ucx_perftest"):
                yield case("ucx_" + transport, what, size, here / "ucx.py", transport)
                if transport == "tcp" and has_ucx:
                    yield case("strata_ucx", what, size, "env", "UCX_TLS=tcp", bench / "messages_transport", "ucx")

    def job(impl, parameter, nodes, transport, *arguments, wrap=()):
        return plan.Case("messages", impl, parameter, nodes, tuple(map(str, (
            *wrap, folder / "bin" / "strata", "run", "-n", nodes, "--workers", 1, "--transport", transport,
            bench / "messages_operations", *arguments))), reps_max=1 if parameter == "idle 10 s" else 1000, again=False)

    few = 10 if quick else 1
    # Beside what a request costs on whole nodes, in the same run.
    for mode in ["polled", "woken"]:
        yield plan.Case("messages", "raw_request_" + mode, "steal, not ahead", 2,
                        tuple(map(str, (bench / "messages_raw_request", mode, 20_000, 100 // few))), again=False)
    for transport in ["shm", "tcp"]:
        impl = "operations_" + transport
        yield job(impl, "put_sync 64", 2, transport, "latency", 100_000 // few)
        yield job(impl, "steal", 2, transport, "steal", 1000 // few)
        yield job(impl, "steal, not ahead", 2, transport, "request", 100 // few)
        for reception in ["blocking", "watchdog", "polling"]:
            yield job(impl, "get, " + reception, 2, transport, "get", 1000 // few, "--strata-reception", reception)
        whole = here / "whole_job.py"
        yield job(impl, "idle 10 s", 4, transport, "idle", 10 // few, wrap=(whole, "cpu"))
        # The idle nodes' own start and end, which is no idling.
        yield job(impl, "start and end, CPU", 4, transport, "empty", wrap=(whole, "cpu"))
        yield job(impl, "start and end", 4, transport, "empty", wrap=(whole, "wall"))


def _nodes(quick, folder, root):
    programs = [("fib(36)", ["fib", "24" if quick else "36"]), ("nqueens(13)", ["nqueens", "8" if quick else "13"]),
                ("UTS T1", ["uts", "T3" if quick else "T1"])]
    sequences = plan.Sequences(root)
    if sequences.exist:
        piece = sequences.piece(50_000 if quick else 2_000_000)
        programs.append(("align", ["align", str(sequences.query), str(piece)]))
    programs = [p for p in programs if (folder / "bin" / p[1][0]).exists()]
    strata = str(folder / "bin" / "strata")
    for name, (program, *rest) in programs:
        command = (str(folder / "bin" / program), *rest, "--json", "--style", "fibers")
        for impl, before, after in [
                ("alone", (), ("--strata-workers", "1")),
                ("one_node", (strata, "run", "-n", "1", "--workers", "1"), ()),
                ("two_nodes_shm", (strata, "run", "-n", "2", "--workers", "1", "--transport", "shm"), ()),
                ("two_nodes_tcp", (strata, "run", "-n", "2", "--workers", "1", "--transport", "tcp"), ())]:
            yield plan.Case("nodes", impl, name, 1, before + command + after, answer="app", units=1)


def cases(chosen, quick, folder, root):
    found = []
    if "messages" in chosen:
        found += _messages(quick, folder, root)
    if "nodes" in chosen:
        found += _nodes(quick, folder, root)
    return found
