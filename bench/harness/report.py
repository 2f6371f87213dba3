# SPDX-License-Identifier: Apache-2.0
"""Says in Markdown and on the terminal what was measured, and which bars it reached."""

from harness import files, measure

# Of docs/performance.md: who writes it, and what has a bar there but takes no more turns than what has none.
sections = {
    "bench": ("bench/run", " (not idle, memory and the bare kernels)"),
    "nodes": ("bench/run --nodes", " (not messages but streams)"),
    "endpoints": ("bench/messages/run --bars", " (not system calls)"),
}


def _marks(section):
    """What surrounds a section."""
    return ("<!-- %s:begin (written by %s; edits between the markers are lost) -->" % (section, sections[section][0]),
            "<!-- %s:end -->" % section)


words = {
    "serial": "serial",
    "serial_unrolled": "serial, recursion inlined by the compiler",
    "strata": "Strata",
    "serial_copies": "serial, a copy on each processor",
    "strata_fork_join": "Strata, fork-join",
    "strata_fibers": "Strata, fibers",
    "tbb": "oneTBB",
    "openmp": "OpenMP (libgomp)",
    "parasail": "parasail, striped 32-bit",
    "kernel": "Strata's kernel, lanes as narrow as exact",
    "kernel32": "Strata's kernel, 32-bit lanes",
    "boost_fcontext": "Boost fcontext",
    "strata_shm": "Strata's transport, shared memory",
    "strata_tcp": "Strata's transport, TCP",
    "strata_ucx": "Strata's transport, UCX over TCP",
    "operations_shm": "Strata, nodes over shared memory",
    "operations_tcp": "Strata, nodes over TCP",
    "bare_ring": "bare ring in shared memory",
    "raw_sockets": "raw sockets",
    "raw_request_polled": "raw sockets, the other polls",
    "raw_request_woken": "raw sockets, the other computes",
    "ucx_shm": "UCX, shared memory",
    "ucx_tcp": "UCX, TCP",
    "ucx_tags_shm": "UCX, shared memory, tags",
    "openmpi": "Open MPI, shared memory",
    "mpich": "MPICH, shared memory",
    "here_1": "Strata, one process, one worker",
    "here_2": "Strata, one process, two workers",
    "threads_shm": "Strata, shared memory",
    "threads_shm_polling": "Strata, shared memory, polling",
    "threads_shm_blocking": "Strata, shared memory, blocking",
    "threads_tcp": "Strata, TCP",
    "threads_ucx": "Strata, UCX over TCP",
    "threads_ucx_polling": "Strata, UCX over TCP, polling",
    "alone": "one node, no launcher",
    "one_node": "one node under the launcher",
    "two_nodes_shm": "two nodes, shared memory",
    "two_nodes_tcp": "two nodes, TCP",
}
titles = {
    "fib": ("Fibonacci, no cut-off", "call"),
    "nqueens": ("N-queens, a task per safe placement", "task"),
    "uts": ("Unbalanced tree search, a task per node", "node"),
    "region": ("Entering an empty parallel region from outside", "region"),
    "context_switch": ("Switching between two stacks", "switch"),
    "align": ("Smith-Waterman, phage lambda against 2,000,000 bases of E. coli (the kernels alone: 50,000)", "cell"),
    "memory": ("Peak memory of UTS T3", ""),
    "idle": ("CPU seconds of an idle runtime in 10 s", ""),
    "messages": ("Messages and operations between two processes", "message"),
    "nodes": ("Programs in fibers, one worker a node", ""),
    "endpoints": ("Messages between threads", "message"),
    "system_calls": ("System calls for a message between threads", ""),
}
# What a reader must know to judge a table.
notes = {
    "fib": "The serial program makes every call (`noinline`). Left alone, g++ inlines the recursion into itself several "
           "levels deep and few calls remain; that is the second row, and no comparison of calls.",
    "uts": "All hash with the same SHA-1 (nettle, with the processor's SHA instructions where it has them); a slower hash "
           "would make every ratio look better.",
    "region": "*empty*: one empty function, the caller may run it (for OpenMP: its parallel region). *caller*: two empty "
              "functions, the caller may run both. *pair*: two functions that wait for each other, so two threads must "
              "take part. *handoff*: one empty function which another thread must run.",
    "messages": "*latency*: half a round trip, both sides spin. *stream*: one way, as fast as it goes. *sleeping*: a round "
                "trip in which whoever waits sleeps. *one-core*: the same with both processes on one core. The number is "
                "the size in bytes. *put_sync*: half a round trip between two fibers, on whole nodes. *steal*: a token of a "
                "busy node, from when the thief has nothing to do until it runs it; tokens of 300 µs, so over TCP the next "
                "one is asked for while one runs. *not ahead*: tokens of 20 ms, which are asked for when there is nothing "
                "to do; the request alone, after as long a pause, beside it. *get*: from a node whose only worker "
                "runs one fiber for 1 s, with each reception. UCX: `ucx_perftest`, thread-safe worker.",
    "endpoints": "*latency*: half a round trip, in one process on one worker and on two, otherwise between two nodes of one worker each. "
                 "*stream*: one way, as fast as it goes. *woken*: a round trip in which whoever waits sleeps. *call*: an empty one, "
                 "there and back. *crowd*: a message of 1,000,000 that 10,000 threads send at random. The number is the size in "
                 "bytes. Strata looks for messages as it does unless told otherwise (*adaptive*), all the time (*polling*), or not at "
                 "all (*blocking*). UCX: `bench/messages/ucx.py`; *tags*: matched and copied, as Strata's and MPI's are. MPI: "
                 "`bench/messages/mpi.py`.",
    "system_calls": "Those of all processes of a job of 201,000 round trips (`bench/messages/system_calls.py`), less those of one of "
                    "1,000, divided by the messages between.",
    "align": "*kernel* rows time the sweep alone, in one process with parasail, whose best variant counts; the others time "
             "the application, which also finds hits, and traces them back.",
}


def _measured(x):
    """Bars are decided in the third digit."""
    return "%.3f" % x if x is not None and 0 < x < 10 else _number(x)


def _number(x):
    if x is None:
        return "–"
    if x == 0:
        return "0"
    if x >= 1000:
        return "{:,.0f}".format(x)
    return "%.3g" % x if x < 1 else ("%.2f" % x if x < 100 else "%.0f" % x)


def _rows(kernel, results):
    """Header and rows of the table of one kernel."""
    members = [r for r in results.values() if r.case.kernel == kernel]
    if kernel != "fib":  # there, implementations have problems of their own
        order = list(dict.fromkeys(r.case.parameter for r in members))
        members.sort(key=lambda r: order.index(r.case.parameter))
    if kernel == "memory":
        serial = next((r for r in members if r.case.impl == "serial"), None)
        header = ["implementation", "workers", "peak MB", "above serial"]
        return header, [[words[r.case.impl], str(r.case.workers), "%.1f" % r.peak_mb,
                         "%+.1f" % (r.peak_mb - serial.peak_mb)] for r in members]
    if kernel == "system_calls":
        return ["what", "implementation", "system calls"], [[r.case.parameter, words[r.case.impl], "%.5f" % r.median]
                                                            for r in members]
    if kernel in ("messages", "endpoints"):
        header = ["what", "implementation", "µs", "GB/s", "± %"]

        def bandwidth(r):
            what, _, size = r.case.parameter.partition(" ")
            return "%.2f" % (float(size) / r.unit_ns) if what == "stream" else ""
        return header, [[r.case.parameter, words[r.case.impl], _number(r.unit_ns / 1000), bandwidth(r),
                         "%.0f" % (100 * r.spread)] for r in members]
    if kernel == "nodes":
        header = ["program", "on", "seconds", "speed-up", "± %"]
        alone = {r.case.parameter: r for r in members if r.case.impl == "alone"}
        return header, [[r.case.parameter, words[r.case.impl], _number(r.median),
                         "%.3f" % (alone[r.case.parameter].median / r.median), "%.0f" % (100 * r.spread)]
                        for r in members]
    if kernel == "idle":
        header = ["implementation", "workers", "CPU seconds"]
        return header, [[words[r.case.impl], str(r.case.workers), "%.3f" % r.median] for r in members]
    unit = titles[kernel][1]
    header = ["problem", "implementation", "workers", "seconds", "ns per " + unit]
    if kernel in ("region", "context_switch"):
        header = ["shape", "implementation", "workers", "ns per " + unit]
    else:
        header += ["to serial", "speed-up", "± %"]
    if kernel == "align":
        header[4] = "10⁹ cells/s"
    rows = []
    for r in members:
        c = r.case
        row = [c.parameter, words[c.impl], str(c.workers)]
        if kernel in ("region", "context_switch"):
            rows.append(row + [_number(r.unit_ns)])
            continue
        serial = next((s for s in members if s.case.impl == "serial" and
                       (s.case.parameter == c.parameter or kernel == "fib")), None)
        one = results.get((kernel, c.impl, c.parameter, 1))
        row += [_number(r.median), _number(1 / r.unit_ns if kernel == "align" else r.unit_ns)]
        row += [_number(r.unit_ns / serial.unit_ns) if serial else "–"]
        row += [_number(one.median / r.median) if one and c.workers > 1 else ""]
        row += ["%.0f" % (100 * r.spread)]
        rows.append(row)
    return header, rows


def _table(header, rows):
    numeric = [all(row[i].strip("–+-.,0123456789") == "" for row in rows) and i > 0 for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---:" if n else "---" for n in numeric) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _bars_table(bars):
    return _table(["what", "bar", "measured", ""], [[b.what, b.limit, _measured(b.value), b.words] for b in bars])


def _kernels(results):
    return list(dict.fromkeys(r.case.kernel for r in results.values()))


def of_whole_cores(results):
    """Which runs count."""
    alone = "A program of one worker runs on the processor that was quickest just before. "
    return (alone if any(r.case.is_alone for r in results.values()) else "") + (
        "%d of %d runs are left out, since one of their processors was shared with another guest when they began or ended; "
        "where fewer than %d are left of a row, all of them count, and a bar says so." % (
            *measure.left_out(results), measure.whole_min))


def as_markdown(results, bars, description, command, section):
    parts = [
        "Measured with `%s` on:" % command,
        "\n".join("- %s: %s" % (k, v) for k, v in description.items()),
        "Medians; implementations alternate, there and back, so that a slow minute hits all of them. Where bars compare, the "
        "ratio is the median of those turn by turn. *±* is half of the span from the fastest to the slowest run. What a bar "
        "times takes %d turns where others take one%s, so its ± spans more runs. %s" % (
            measure.turns_of_decisive, sections[section][1], of_whole_cores(results)) + (
            " *To serial* divides the time per unit by that "
            "of the serial program on one core (1 is as fast, 2 is half as fast); *speed-up* is over the same "
            "implementation with one worker." if section == "bench" else ""),
        "### Bars\n\n" + _bars_table(bars),
    ]
    if section == "bench":
        parts.append("![Time per task compared with the serial program](figures/bench_overhead.svg)\n\n"
                     "![Speed-up over the serial program](figures/bench_speedup.svg)")
    for kernel in _kernels(results):
        parts.append("### %s\n\n%s" % (titles[kernel][0], _table(*_rows(kernel, results))))
        if kernel in notes:
            parts.append(notes[kernel])
    return "\n\n".join(parts)


def write(path, results, bars, description, command, section):
    begin, end = _marks(section)
    text = path.read_text(encoding="utf-8") if path.exists() else "# Performance\n\n%s\n%s\n" % (begin, end)
    if begin not in text or end not in text:
        text = text.rstrip() + "\n\n%s\n%s\n" % (begin, end)
    head, rest = text.split(begin, 1)
    tail = rest.split(end, 1)[1]
    body = as_markdown(results, bars, description, command, section)
    files.write_whole(path, "%s%s\n\n%s\n\n%s%s" % (head, begin, body, end, tail))


def _columns(header, rows):
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in [header] + rows)


def as_text(results, bars, description):
    parts = ["%-10s %s" % (k, v) for k, v in description.items()]
    for kernel in _kernels(results):
        parts.append("\n%s\n%s" % (titles[kernel][0], _columns(*_rows(kernel, results))))
    if bars:
        parts.append("\n" + _columns(["bar", "", "measured", ""],
                                     [[b.what, b.limit, _measured(b.value), b.words] for b in bars]))
    return "\n".join(parts) + "\n\n" + of_whole_cores(results) + "\n"
