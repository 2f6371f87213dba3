# SPDX-License-Identifier: Apache-2.0
"""What the commands that repeat a paper's experiments share: programs that answer in JSON, medians, tables and CSV."""

import csv
import io
import shlex
import statistics
import subprocess
import sys

from harness import files, measure


class Failed(Exception):
    pass


def answer(command, limit_s=300):
    """The last line that the program prints, which is one JSON object."""
    words = [str(c) for c in command]
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Failed("no end after %d s: %s" % (limit_s, shlex.join(words)))
    if done.returncode != 0:
        raise Failed("code %d: %s\n%s" % (done.returncode, shlex.join(words), done.stderr))
    return measure.answer_in(done.stdout, words)


def answers(commands, reps, cores=None):
    """key -> command becomes key -> all answers; commands take turns, so that a slow minute hits all of them. With
    `cores` each has the processors to itself, as far as their patience goes."""
    found = {key: [] for key in commands}
    for rep in range(reps):
        # And back, so that nobody always comes after the same one.
        for key, command in list(commands.items())[::1 if rep % 2 == 0 else -1]:
            if sys.stderr.isatty():
                print("\r%s, %d of %d\x1b[K" % (" ".join(map(str, key)), rep + 1, reps), end="", file=sys.stderr,
                      flush=True)
            found[key].append(cores.run(None, lambda _: answer(command))[0] if cores else answer(command))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return found


def median(found, value):
    return statistics.median(a[value] for a in found)


def write_csv(path, rows):
    text = io.StringIO()
    out = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    files.write_whole(path, text.getvalue())


def series(rows, name, x, y):
    lines = {}
    for row in rows:
        lines.setdefault(row[name], []).append((float(row[x]), float(row[y])))
    return lines


def table(rows, row_key, column_key, value, row_title):
    columns = list(dict.fromkeys(r[column_key] for r in rows))
    lines = ["| %s | %s |" % (row_title, " | ".join(map(str, columns))), "|---|" + "---:|" * len(columns)]
    for key in dict.fromkeys(r[row_key] for r in rows):
        cells = {r[column_key]: r[value] for r in rows if r[row_key] == key}
        lines.append("| %s | %s |" % (key, " | ".join(cells.get(c, "") for c in columns)))
    return "\n".join(lines)
