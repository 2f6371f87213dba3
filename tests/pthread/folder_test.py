#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles against the folder include/strata/shim as programs do that have other flags than ours: each standard of C and C++,
each set of feature macros, gcc and clang. In C the folder's headers must declare and define what the C library's do under the
same flags, nothing else, and must rename all of that which strata has, and nothing else."""
import pathlib
import re
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
include = here.parent.parent / "include"
folder = ["-I", str(include / "strata" / "shim")]
sources = here / "folder"
strict = ["-pedantic", "-Wall", "-Wextra", "-Werror"]

c_flags = [
    "-ansi", "-std=c99", "-std=c11", "-std=c17", "-std=c2x", "-std=gnu89", "-std=gnu11", "-std=gnu17",
    "-std=c99 -D_POSIX_SOURCE", "-ansi -D_POSIX_C_SOURCE=2", "-ansi -D_POSIX_C_SOURCE=199309L",
    "-std=c11 -D_POSIX_C_SOURCE=199506L", "-std=c99 -D_POSIX_C_SOURCE=200112L", "-std=c11 -D_POSIX_C_SOURCE=200809L",
    "-ansi -D_XOPEN_SOURCE", "-ansi -D_XOPEN_SOURCE -D_XOPEN_SOURCE_EXTENDED", "-std=c11 -D_XOPEN_SOURCE=500",
    "-std=c99 -D_XOPEN_SOURCE=600", "-std=c11 -D_XOPEN_SOURCE=700", "-std=c99 -D_DEFAULT_SOURCE",
    "-std=c11 -D_GNU_SOURCE", "-std=gnu17 -D_GNU_SOURCE -fexceptions",
]
cxx_flags = ["-std=c++98", "-std=gnu++98", "-std=c++11", "-std=c++17", "-std=c++20"]

# As the C library's header says them, whose names of pthreads these are.
own_macros = {"pthread_yield", "pthread_mutex_consistent_np"}
headers = sorted(f.stem for f in (include / "strata" / "shim").iterdir() if f.stem != "errno")
failures = []


def run(command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        failures.append("%s\n%s" % (" ".join(command), done.stderr[:1000]))
    return done.stdout


def preprocessed(compiler, flags, names, extra):
    """What remains of these headers, and what is renamed in it."""
    text = "".join("#include <%s.h>\n" % n for n in names)
    rest, renamed = [], {}
    for line in run([compiler, "-E", "-P", "-dD", *flags.split(), *extra, "-x", "c", "-"], text).splitlines():
        words = line.split()
        if words[:2] == ["#pragma", "redefine_extname"]:
            renamed[words[2]] = words[3]
        elif words[:1] != ["#pragma"] and not (
                words[:1] == ["#define"] and (words[1].startswith("STRATA_SHIM_") or words[1] in own_macros)):
            rest += words
    return " ".join(rest), renamed


def check_headers(compiler, all_flags):
    text = "".join((include / "strata" / h).read_text() for h in ("pthread.h", "threads.h"))
    ours = {n for n in re.findall(r"\bstrata_(\w+)\(", text)
            if not n.startswith(("cleanup_", "scope_", "pthread_cleanup_", "errno_"))}
    # What pthread_cleanup_push() expands to: the C library's names have `__` in front.
    ours = {"__" + n if re.search(r"_(un)?register_cancel|_unwind_next", n) else n for n in ours}
    ever = set()
    for flags in all_flags:
        # Each header by itself, once.
        for names in [headers, *([h] for h in headers)] if flags == c_flags[-1] else [headers]:
            said = "%s %s, %s" % (compiler, flags, " ".join(names))
            native, _ = preprocessed(compiler, flags, names, [])
            with_folder, renamed = preprocessed(compiler, flags, names, folder)
            ever |= set(renamed)
            if native != with_folder:
                failures.append("%s: the folder declares something else" % said)
            declared = set(re.findall(r"(\w+) ?\)? ?\(", native)) & ours
            for name in sorted(declared ^ set(renamed)):
                failures.append("%s: %s is %s" % (said, name, "not renamed" if name in declared else "not declared"))
            for name, other in renamed.items():
                if other != "strata_" + name.removeprefix("__"):
                    failures.append("%s: %s becomes %s" % (said, name, other))
    for name in sorted(ours - ever):
        failures.append("%s: %s is never renamed" % (compiler, name))


def main():
    both = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if all(map(shutil.which, pair))]
    if not both:
        print("neither gcc nor clang is installed")
        return 77
    for cc, cxx in both:
        # The C library is the same, so all of them once.
        check_headers(cc, c_flags if cc == both[0][0] else c_flags[-2:])
        for compiler, all_flags, source in ((cc, c_flags, "strict.c"), (cxx, cxx_flags, "old.cpp")):
            for flags in all_flags:
                command = [compiler, "-fsyntax-only", *strict, *flags.split()]
                run([*command, *folder, "-I", str(include), str(sources / source)])
                language = "c" if compiler == cc else "c++"
                for header in ("pthread", "threads"):
                    text = "#include <strata/%s.h>\nextern int used;\n" % header
                    run([*command, "-I", str(include), "-x", language, "-"], text)
    print("\n".join(failures[:20]) or "%d sets of flags, with each of: %s" % (
        len(c_flags) + len(cxx_flags), ", ".join("%s %s" % p for p in both)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
