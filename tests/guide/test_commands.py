# SPDX-License-Identifier: Apache-2.0
"""For pages.py: whether the commands of a page that run some of the tests name such as there are. They are looked for in the sources,
since a build may lack some; what a parameter makes of a name may be any word in quotes beside INSTANTIATE_TEST_SUITE_P."""
import fnmatch
import os
import re


def tests_of(root):
    """(names, programs): what ctest may call a test, and {program: what GoogleTest calls its tests, without a parameter}."""
    names, users, instances, programs = set(), {}, {}, {}
    for listing in (root / "tests").rglob("CMakeLists.txt"):
        text = re.sub(r"#.*", "", listing.read_text())
        names.update(re.findall(r"\bNAME ([\w.]+)", text))
        names.update("bench." + name for name in re.findall(r"\bstrata_bench_test\(([\w.]+)", text))
        names.update(re.findall(r"\bguide_page\(\S+ \S+ ([\w.]+)", text))
        for program, arguments in re.findall(r"\b(?:strata_add_test|target_sources)\((\w+)([^)]*)\)", text):
            for source in re.findall(r"[\w./]+\.cpp\b", arguments):
                users.setdefault(os.path.normpath(listing.parent / source), set()).add(program)
    texts = {str(path): path.read_text() for path in (root / "tests").rglob("*.[ch]pp")}
    for path, text in texts.items():
        for instance, suite in re.findall(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+)", text):
            instances.setdefault(suite, set()).update((f"{instance}/", program) for program in users.get(path, ()))
            names.update(re.findall(r'"(\w+)"', text))
    for path, text in texts.items():
        for suite, test in re.findall(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", text):
            for instance, program in instances.get(suite) or {("", program) for program in users.get(path, ())}:
                programs.setdefault(program, set()).add(f"{instance}{suite}.{test}")
    names.update(f"{program}.{test}" for program, tests in programs.items() for test in tests)
    return names, programs


def vain(tests, text):
    """(line, part) of each part of such a command that is no test's name."""
    names, programs = tests
    for command in re.finditer(r"\bctest [^`\n]*?-R (\"[^\"]*\"|[^\s`]+)", text):
        for part in command[1].strip('"').replace(r"\|", "|").split("|"):  # \| in tables
            if part != "X" and not any(re.search(part, name) for name in names):
                yield text.count("\n", 0, command.start()) + 1, part
    for command in re.finditer(r"([\w/]+) --gtest_filter='?([^\s`']+)", text):
        own = programs.get(os.path.basename(command[1]), ())
        for part in command[2].split("-")[0].split(":"):
            pattern = re.sub(r"(\.[^/]*)/.*", r"\1", part)  # without a parameter
            if not any(fnmatch.fnmatchcase(name, pattern) for name in own):
                yield text.count("\n", 0, command.start()) + 1, part
