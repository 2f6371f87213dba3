#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py [--installed] ROOT: whether README.md, CHANGELOG.md and what lies under docs/ can be read. Links and names of
sources lead somewhere, each page is found from README.md and begins with what it is for, and prose has paragraphs of six lines of
160 columns at most; code below `<!-- from SOURCE -->` is as there. Pages and sections that a benchmark writes, tables and other
code are as they are; decisions are not measured. Commands that run some of the tests name such as there are (test_commands.py).
--installed: ROOT is the documents' folder of an installed copy, where there are no sources, and links lead to what is there."""
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import test_commands  # noqa: E402

COLUMNS, LINES = 160, 6


def without_code(text):
    """TEXT with its fenced blocks blanked, so that line numbers stay."""
    return re.sub(r"(?ms)^[ ]*```.*?^[ ]*```[ ]*$", lambda block: "\n" * block[0].count("\n"), text)


def anchors(text):
    """What GitHub makes of the headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", without_code(text))
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", heading).lower()).strip().replace(" ", "-") for heading in headings}


def links(page, text):
    """(line, file, anchor) of each link to a file."""
    text = without_code(text)
    for match in re.finditer(r"\]\(([^)\s]*)\)", text):
        if re.match(r"[a-z]+:", match[1]):
            continue
        file, _, anchor = match[1].partition("#")
        line = text.count("\n", 0, match.start()) + 1
        yield line, (page.parent / file).resolve() if file else page, anchor


def sources(root, text):
    """(line, name) of each source that is named and not there. Names are relative to a folder where readers look for them."""
    for match in re.finditer(r"`((?:[\w-]+/)+[\w-]+\.(?:cpp|hpp|h|py|cmake))`", without_code(text)):
        if match[1].startswith("share/"):  # of an installed copy
            continue
        if not any((root / folder / match[1]).exists() for folder in (".", "src", "include", "include/strata")):
            yield without_code(text).count("\n", 0, match.start()) + 1, match[1]


def misquoted(root, text):
    """(line, name) of each block below `<!-- from NAME -->` whose lines are not in that source."""
    def lines(of):
        return "\n" + "\n".join(line.strip() for line in of.split("\n")) + "\n"

    for match in re.finditer(r"(?ms)^<!-- from (\S+) -->\n```\w+\n(.*?)^```$", text):
        source = root / match[1]
        if not source.exists() or lines(match[2].rstrip("\n")) not in lines(source.read_text()):
            yield text.count("\n", 0, match.start()) + 1, match[1]


def prose(text):
    """(line, lines) of each paragraph and list item."""
    text = re.sub(r"(?s)<!-- \w+:begin.*?<!-- \w+:end -->", lambda part: "\n" * part[0].count("\n"), without_code(text))
    begin, block = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        other = not line.strip() or re.match(r"\s*(\||#|!\[|<!--)", line)
        if block and (other or re.match(r"\s*([-*]|\d+\.) ", line)):
            yield begin, block
            block = []
        if not other:
            begin = begin if block else number
            block.append(line)


def main(root, installed=False):
    root = pathlib.Path(root).resolve()
    pages = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
    texts = {page: page.read_text() for page in pages}
    tests = None if installed else test_commands.tests_of(root)
    wrong, found, unread = [], set(), [root / "README.md"]
    for page, text in texts.items():
        name = page.relative_to(root)
        for line, file, anchor in links(page, text):
            if not file.exists() or not file.is_relative_to(root):
                wrong.append(f"{name}:{line}: a link to {os.path.relpath(file, root)}, which is not there")
            elif anchor and file in texts and anchor not in anchors(texts[file]):
                wrong.append(f"{name}:{line}: a link to #{anchor}, which {file.relative_to(root)} has not")
        if not installed:
            wrong += [f"{name}:{line}: {source}, which is not there" for line, source in sources(root, text)]
            wrong += [f"{name}:{line}: not as in {source}" for line, source in misquoted(root, text)]
            wrong += [f"{name}:{line}: {which} names no test" for line, which in test_commands.vain(tests, text)]
        if not re.match(r"# \S.*\n\n?[^\s#|`]", text):
            wrong.append(f"{name}:1: does not begin with a heading and what the page is for")
        if "decisions" in page.parts or "\nWritten by `bench/" in text:
            continue
        for line, block in prose(text):
            if len(block) > LINES:
                wrong.append(f"{name}:{line}: {len(block)} lines in one piece")
            for i, words in enumerate(block):
                if len(words) > COLUMNS:
                    wrong.append(f"{name}:{line + i}: {len(words)} columns")
    while unread:
        page = unread.pop()
        found.add(page)
        unread += {file for _, file, _ in links(page, texts[page]) if file in texts} - found
    wrong += [f"{page.relative_to(root)}: not found from README.md" for page in pages if page not in found]
    print("\n".join(wrong) if wrong else f"{len(pages)} pages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1], "--installed" in sys.argv[1:-1]))
