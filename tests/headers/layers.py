#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py ROOT: whether each folder of ROOT includes only what the table "Folders" of docs/architecture.md lets it, and no
folders include each other in a circle.

The table's last column names rooms by their last words (`words` is src/cluster/words/): a folder may include them, and what they
may. Behind "of" less is meant: not what these may, and where headers are named, only those. A folder without a row has that of the
folder it lies in, and a room may include what lies in it. All may include base and the public headers, but for these."""
import itertools
import pathlib
import re
import sys

TABLE = "docs/architecture.md"
WALKED = ("include", "src", "tools", "apps", "bench", "fuzz")
PUBLIC = ("include/strata", "include/strata/detail")


def lies_in(path, folder):
    return path == folder or path.startswith(folder + "/")


class Rooms:
    def __init__(self, text):
        self.cells = dict(re.findall(r"(?m)^\| `([\w/]+)/` \|.*\| (.*?) \|$", text[text.index("\n## Folders"):]))
        self.whole, self.parts = {}, {}  # room -> rooms; room -> [(room, its headers; all of them if none are named)]
        for room, cell in self.cells.items():
            whole, *parts = re.split(r"(?:,? and|[,;]) of ", cell.replace("`", ""))
            words = re.split(r",? and |, ", whole)
            self.whole[room] = list(self.cells) if words[0] in ("all", "everything") else [
                self.named(w.strip("/"), room) for w in words if w not in ("nothing", "each other")]
            self.parts[room] = [
                (self.named(w, room), re.findall(r"[\w/]+\.h(?:pp)?\b", part)) for part in parts
                for w in itertools.takewhile(self.ending_in, re.sub(" and |, ", " ", part).split(" "))]

    def ending_in(self, word):
        return [PUBLIC[0]] if word == "the public headers" else [r for r in self.cells if ("/" + r).endswith("/" + word)]

    def named(self, word, by):
        found = self.ending_in(word)
        if len(found) != 1:
            sys.exit("%s: the row of %s/ names '%s': %s" % (TABLE, by, word, "which of " + ", ".join(found) + "?" if found
                                                            else "no folder of the table is called that"))
        return found[0]

    def around(self, path):
        return max((r for r in self.cells if lies_in(path, r)), key=len, default=None)

    def allow(self, room, header):
        may, todo = set(() if room in PUBLIC else ("src/base", *PUBLIC)), [room]
        while todo:
            at = todo.pop()
            if at not in may or at == room:
                todo += [r for r in self.cells if r not in may and r != room and (r in self.whole[at] or lies_in(r, at))]
                may.add(at)
        return self.around(header) in may or any(
            lies_in(header, part) and (not named or header.endswith(tuple("/" + n for n in named)))
            for part, named in self.parts[room])


def includes(root):
    """(file, line, header) of all that files of ours include of ours, as paths below root."""
    for file in sorted(f for top in WALKED for f in (root / top).rglob("*.[ch]*") if f.suffix in (".hpp", ".cpp", ".h")):
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            if found := re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<(strata/[^>]+)>)', line):
                header = found[1] or found[2]
                at = next((f for f in (file.parent, root / "include", root / "src", root) if (f / header).exists()), root)
                yield file.relative_to(root).as_posix(), number, (at / header).relative_to(root).as_posix()


def circle(edges):
    """Folders of which each includes the next, and the last the first; none where there is no circle."""
    done, way = set(), []

    def visit(folder):
        if folder in way:
            return way[way.index(folder):]
        if folder not in done:
            way.append(folder)
            for other in sorted(edges.get(folder, ())):
                if found := visit(other):
                    return found
            done.add(way.pop())
        return []

    return next(filter(None, map(visit, sorted(edges))), [])


def main(root):
    rooms, wrong, edges = Rooms((root / TABLE).read_text(encoding="utf-8")), [], {}
    for file, line, header in includes(root):
        here, there, where = file.rpartition("/")[0], header.rpartition("/")[0], "%s:%d" % (file, line)
        room = rooms.around(file)
        if room is None:
            wrong.append("%s: %s/ has no row in %s: add one that says what it may include" % (where, here, TABLE))
        elif not (root / header).exists():
            wrong.append('%s: there is no "%s"; what is not of this project stands in <>' % (where, header))
        elif not rooms.allow(room, header):
            wrong.append("%s: includes %s, and the row of %s/ in %s does not say so: move what is needed below both, let a folder "
                         "above both introduce them by a hook, or amend the row if it is wrong" % (where, header, room, TABLE))
        if here != there:
            edges.setdefault(here, {}).setdefault(there, "%s includes %s" % (where, header))
    if found := circle(edges):
        wrong.append("folders include each other in a circle: %s: move what is needed below, or let a folder above introduce them" %
                     "; ".join(edges[a][b] for a, b in zip(found, found[1:] + found[:1])))
    print("\n".join(wrong or ["%d folders include others as %s says" % (len(edges), TABLE)]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
