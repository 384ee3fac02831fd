#!/usr/bin/env python3
"""Counts long sentences and private words in pages, messages and comments; fails where a bound is broken.

    tests/structure/prose.py [ROOT] [--list WHAT]

Each row has the figure, its bound and the target. A bound may be lowered, never raised. `--list` prints the places of a
row: sentences, pages, messages or comments. Exit code 1 where a figure is above its bound.

A sentence is text of a Markdown page outside of code blocks, tables, HTML comments and headings. It ends at a full stop,
a colon, a semicolon, a question mark, the end of a list item or an empty line. A message is a C++ string literal of the
product that holds two words or more. Code between backticks does not count.
"""
import os
import re
import subprocess
import sys

PRODUCT = ("framework/", "plugins/", "kernels/", "include/", "optimizers/", "ttt/", "launch/", "tools/", "lab/")
C_LIKE = (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")
HASHED = (".py", ".sh", ".bash", ".cmake", "CMakeLists.txt", ".toml")
THIS = "tests/structure/prose.py"
PRIVATE = re.compile(
    r"\b(?:(?<!dot )(?<!inner )(?<!outer )products?|processors?|equal seconds|levers?|stand-ins?|trials?|whoever|nobody|beside"
    r"|behind|by hand|and says so|says so|a twentieth|seen to fail|mend(?:s|ed|ing)?|of which|(?<!standard )deviations?"
    r"|the same, after)\b", re.I)
LONGEST = 35  # words of a sentence


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def prose_of(page):
    """Yields (line, text) of the paragraphs and list items of a Markdown page."""
    page = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), page, flags=re.S)
    fenced, first, text = False, 0, []
    for number, line in enumerate(page.splitlines() + [""], 1):
        fence = line.lstrip().startswith("```")
        skipped = fence or fenced or not line.strip() or re.match(r"(\s*\||#| {4,}\S|!\[)", line)
        fenced ^= fence
        item = re.match(r"\s*(?:[-*]|\d+\.)\s+", line)
        if (skipped or item) and text:
            yield first, " ".join(text)
            text = []
        if not skipped:
            first = first if text else number
            text.append(line.strip())


def plain(text):
    text = re.sub(r"`[^`]*`", "CODE", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(page):
    for line, text in prose_of(page):
        for sentence in re.split(r"(?<=[.:;?!])\s+", plain(text)):
            yield line, sentence


def comments(path, text):
    marker = r"//.*|/\*.*?\*/" if path.endswith(C_LIKE) else r"(?<!\S)#.*"
    found = re.findall(marker, text)
    if path.endswith(".py"):
        found += re.findall(r'"""(.*?)"""', text, re.S)
    return found


def messages(text):
    text = re.sub(r"//.*|^\s*#.*", "", text, flags=re.M)
    return [m for m in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", m)]


def main(arguments):
    listed = arguments[arguments.index("--list") + 1] if "--list" in arguments else None
    root = arguments[0] if arguments and not arguments[0].startswith("--") else os.path.join(os.path.dirname(__file__), "../..")
    os.chdir(root)
    paths = [p for p in subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
             if os.path.isfile(p) and not p.startswith(THIS)]
    places = {"sentences": [], "pages": [], "messages": [], "comments": []}
    markdown = 0
    for path in paths:
        if path.endswith(".md"):
            page = read(path)
            markdown += page.count("\n")
            for line, sentence in sentences(page):
                if len(sentence.split()) > LONGEST:
                    places["sentences"].append(f"{path}:{line}: {sentence}")
            without = re.sub(r"```.*?```", "", page, flags=re.S)
            for word in PRIVATE.findall(plain(without)):
                places["pages"].append(f"{path}: {word}")
        elif path.endswith(C_LIKE + HASHED):
            text = read(path)
            for comment in comments(path, text):
                places["comments"] += [f"{path}: {word}: {comment.strip()[:100]}" for word in PRIVATE.findall(plain(comment))]
            if path.endswith(C_LIKE) and path.startswith(PRODUCT) and not path.endswith("_test.cpp"):
                for message in messages(text):
                    places["messages"] += [f"{path}: {word}: {message[:100]}" for word in PRIVATE.findall(plain(message))]
    readme = read("README.md")
    words = sum(len(text.split()) for _, text in prose_of(readme))
    rows = [  # what, figure, bound, target
        ("lines of Markdown", markdown, 6000, 6000),
        ("lines of README.md", readme.count("\n"), 120, 120),
        ("words of README.md outside of tables and code", words, 350, 1100),
        (f"sentences of more than {LONGEST} words in pages", len(places["sentences"]), 0, 0),
        ("private words in pages", len(places["pages"]), 0, 0),
        ("private words in messages", len(places["messages"]), 0, 0),
        ("private words in comments", len(places["comments"]), 35, 50),
    ]
    if listed:
        print("\n".join(places[listed]))
    print(f"{'':50}{'figure':>9}{'bound':>9}{'target':>9}")
    for what, figure, bound, target in rows:
        print(f"{what:50}{figure:9}{bound:9}{target:9}{'  above its bound' if figure > bound else ''}")
    return any(figure > bound for _, figure, bound, _ in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
