# SPDX-License-Identifier: Apache-2.0
"""Which programs are run on which problems."""

import dataclasses
import gzip
import pathlib
import tempfile

kernels = ["fib", "nqueens", "uts", "region", "context_switch", "align", "memory", "idle"]


@dataclasses.dataclass(frozen=True)
class Case:
    kernel: str
    impl: str
    parameter: str
    workers: int
    command: tuple
    # How to read the answer: "bench" one line of our own JSON; "app" an application's --json; "parasail" the table that
    # align_bench_parasail prints, of which this case is the best line that matches `line` in block number `block`.
    answer: str = "bench"
    units: float = 0  # for "app" and "parasail": what one run computes
    line: str = ""
    block: int = 0
    reps_max: int = 1000
    again: bool = True  # several turns in a repetition where a bar depends on it

    @property
    def key(self):
        return (self.kernel, self.impl, self.parameter, self.workers)

    @property
    def is_alone(self):
        """Whether one processor is all that it needs: not where something goes on beside its worker."""
        return self.workers == 1 and self.kernel not in ("messages", "nodes", "idle", "region", "preemption")


# kernel -> implementation -> (full problem, quick problem). Peers that need long take a smaller problem: figures are
# compared per unit.
problems = {
    "fib": {
        "serial": (["38"], ["30"]),
        "serial_unrolled": (["38"], ["30"]),
        "strata_fork_join": (["38"], ["30"]),
        "strata_fibers": (["32"], ["25"]),
        "tbb": (["32"], ["25"]),
        "openmp": (["32"], ["25"]),
    },
    "nqueens": {i: (["13"], ["10"]) for i in ["serial", "strata_fork_join", "strata_fibers", "tbb", "openmp"]},
    "uts": {i: (["T1", "T3"], ["T3"]) for i in ["serial", "strata_fork_join", "strata_fibers", "tbb", "openmp"]},
    "region": {
        "strata": (["empty", "caller", "pair", "handoff"],) * 2,
        "tbb": (["empty", "caller", "pair", "handoff"],) * 2,
        "openmp": (["empty", "pair"],) * 2,
    },
    "context_switch": {i: (["plain", "inexact"],) * 2 for i in ["strata", "boost_fcontext"]},
    "idle": {i: (["10"], ["1"]) for i in ["strata", "tbb", "openmp"]},
}


def _programs(kernel, workers, quick, folder):
    for impl, (full, small) in problems[kernel].items():
        program = folder / "bench" / ("%s_%s" % (kernel, impl))
        if not program.exists():
            continue  # its library is not installed
        for parameter in small if quick else full:
            for w in workers:
                if impl.startswith("serial") and w != 1:
                    continue
                if kernel == "idle" and w != max(workers):
                    continue
                if kernel == "context_switch" and w != 1:
                    continue
                if parameter == "pair" and w != 2:
                    continue
                yield Case(kernel, impl, parameter, w, (str(program), "--workers", str(w), parameter),
                           reps_max=1 if kernel == "idle" else 1000, again=kernel != "idle")


def _memory(workers, folder):
    for case in _programs("uts", workers, True, folder):
        yield dataclasses.replace(case, kernel="memory", again=False)


def _sequence(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="ascii") as f:
        return "".join(line.strip() for line in f if not line.startswith(">"))


# Deleted when the process ends.
_scratch = []


class Sequences:
    """A phage, and pieces of a bacterium to compare it with."""

    def __init__(self, root):
        self.query = root / "data" / "lambda_virus.fa.gz"
        self._genome = root / "data" / "NC_008253.fna.gz"
        self.exist = self.query.exists() and self._genome.exists()
        if self.exist:
            self._scratch = tempfile.TemporaryDirectory(prefix="strata-bench-")
            _scratch.append(self._scratch)
            self._bases, self.rows = _sequence(self._genome), float(len(_sequence(self.query)))

    def piece(self, letters):
        path = pathlib.Path(self._scratch.name) / ("%d.fa" % letters)
        path.write_text(">piece\n%s\n" % self._bases[:letters], encoding="ascii")
        return path


def _align(workers, quick, folder, root):
    program = folder / "bin" / "align"
    sequences = Sequences(root)
    if not (program.exists() and sequences.exist):
        return
    query, rows, piece_of = sequences.query, sequences.rows, sequences.piece
    length = 200_000 if quick else 2_000_000
    piece, cells = piece_of(length), rows * length
    name = "lambda-%dk" % (length // 1000)
    for style in ["serial", "fork-join", "fibers"]:
        for w in [1] if style == "serial" else workers:
            impl = style if style == "serial" else "strata_" + style.replace("-", "_")
            yield Case("align", impl, name, w,
                       (str(program), str(query), str(piece), "--json", "--style", style, "--strata-workers", str(w)),
                       answer="app", units=cells)
    # What the processors can do at best when all of them are busy.
    for w in workers:
        if w > 1:
            yield Case("align", "serial_copies", name, w,
                       (str(root / "bench" / "harness" / "side_by_side.py"), str(w), str(program), str(query),
                        str(piece), "--json", "--style", "serial"), answer="app", units=w * cells)
    parasail = folder / "bin" / "align_bench_parasail"
    if parasail.exists():
        length = 20_000 if quick else 50_000  # six variants of it are tried
        piece, cells = piece_of(length), rows * length
        for block, gaps in enumerate(["linear gaps", "affine gaps"]):
            for impl, line in [("parasail", "parasail striped 32"), ("kernel", "as narrow as exact"),
                               ("kernel32", "32-bit lanes")]:
                yield Case("align", impl, gaps, 1, (str(parasail), str(query), str(piece), "1"), answer="parasail",
                           units=cells, line=line, block=block, again=False)


def cases(chosen, workers, quick, folder, root):
    found = []
    for kernel in chosen:
        if kernel == "memory":
            found += _memory(workers, folder)
        elif kernel == "align":
            found += _align(workers, quick, folder, root)
        else:
            found += _programs(kernel, workers, quick, folder)
    return found
