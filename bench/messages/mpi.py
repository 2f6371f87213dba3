#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What messages cost in MPI (Debian: libopenmpi-dev, libmpich-dev).

mpi.py openmpi|mpich FOLDER shm|tcp|ucx latency|stream BYTES N: one line of JSON, as the other programs here print it. The
program is built in FOLDER when it is older than its source. ucx: through UCX, over TCP."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent
source = root / "bench" / "messages" / "mpi.cpp"
flags_over = {
    "openmpi": {
        "shm": [],
        "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
        # It takes UCX for fast networks only, unless told.
        "ucx": ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"],
    },
    # Debian's goes through UCX, which is there by itself.
    "mpich": {"shm": []},
}


def available(kind, transport):
    return bool(shutil.which("mpicxx." + kind) and shutil.which("mpirun." + kind) and transport in flags_over[kind] and
                (transport != "ucx" or knows_ucx()))


@functools.cache
def knows_ucx():
    """Whether Open MPI was built with it."""
    if not shutil.which("ompi_info"):
        return False
    done = subprocess.run(["ompi_info", "--parsable"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return "mca:pml:ucx:" in done.stdout


def built(kind, folder):
    program = folder / ("messages_mpi_" + kind)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["mpicxx." + kind, "-std=c++20", "-O3", "-DNDEBUG", "-I", root, source, "-o", program], check=True)
    return program


def main():
    kind, folder, transport, *what = sys.argv[1:]
    # Containers measure as root, which Open MPI wants to be told twice. Ranks place themselves.
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if transport == "ucx":
        env.update(UCX_TLS="self,tcp", UCX_NET_DEVICES="lo", UCX_LOG_LEVEL="error")
    flags = list(flags_over[kind][transport])
    flags += ["--bind-to", "none", "--oversubscribe"] if kind == "openmpi" else []
    done = subprocess.run(["mpirun." + kind, *flags, "-n", "2", str(built(kind, pathlib.Path(folder))), *what], env=env,
                          timeout=300)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
