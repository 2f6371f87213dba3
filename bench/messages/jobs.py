# SPDX-License-Identifier: Apache-2.0
"""Jobs of two nodes whose threads exchange messages."""

# A thread that waits leaves its worker with nothing to do. What the worker does then is the dispatcher.
dispatchers = {
    "polling": ["--strata-reception", "polling", "--strata-spin-us", "1000000"],
    "blocking": ["--strata-reception", "blocking", "--strata-spin-us", "0"],
    "adaptive": ["--strata-reception", "adaptive"],
}


def job(build_dir, transport, *rest):
    return [build_dir / "bin" / "strata", "run", "-n", 2, "--workers", 1, "--transport", transport,
            build_dir / "bench" / "messages_endpoints", *rest]


def has_ucx(build_dir):
    """Whether the library is built with it."""
    with open(build_dir / "CMakeCache.txt", encoding="utf-8") as f:
        return "STRATA_UCX_INCLUDE_DIR:PATH=/" in f.read()
