#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What test_commands.py says of a small tree: it finds what names no test, and nothing else."""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import test_commands  # noqa: E402

FILES = {
    "tests/a/CMakeLists.txt": "strata_add_test(test_a SOURCES a_test.cpp  # b.cpp)\n  ../c_test.cpp LABELS unit)\nadd_test(NAME page.one COMMAND x)",
    "tests/a/a_test.cpp": 'TEST(lock, is_free) {}\nINSTANTIATE_TEST_SUITE_P(ways, job, testing::Values("by_hand"));',
    "tests/c_test.cpp": "TEST_F(door, opens) {}",
    "tests/suite.hpp": 'TEST_P(job,\n       ends) {}\nconst char* text = "elsewhere";',
}
PAGE = """
`ctest -R lock`, `ctest --preset check -R "door.opens\\|test_a.ways/job.ends\\|by_hand\\|^page"`, and `ctest -R X` of any.
`bin/test_a --gtest_filter='lock.*:*/job.ends/by_hand:door.opens'`
`ctest -R "lock\\|knock"`, `ctest -R job.begins`, `ctest -R elsewhere`
`test_a --gtest_filter=lock.is` and `test_b --gtest_filter='lock.*'`
"""
EXPECTED = [(4, "knock"), (4, "job.begins"), (4, "elsewhere"), (5, "lock.is"), (5, "lock.*")]

with tempfile.TemporaryDirectory(prefix="strata-commands-") as folder:
    root = pathlib.Path(folder).resolve()
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    said = list(test_commands.vain(test_commands.tests_of(root), PAGE))
if said != EXPECTED:
    sys.exit(f"expected {EXPECTED}, got {said}")
