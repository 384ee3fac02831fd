#!/usr/bin/env python3
"""Checks what documentation and comments point at; prints one line per fault and ends with exit code 1 on any.

    documentation.py ROOT

1. Links in *.md: the file exists, and so does the heading of an #anchor (as GitHub names it).
2. `docs/NAME.md` and `docs/NAME.md#anchor` anywhere in the tree: the same.
3. Paths of the repository between backticks in *.md and in comments of C++ and CUDA files: there is such a file or folder.
4. docs/architecture.md names every folder of framework/, plugins/, tests/, optimizers/ and ttt/ ("core/", "gptq").
5. Nothing cites a page that the repository does not hold ("spec/...", "specification of the record run").
6. README.md has at most 120 lines: what is longer belongs on a page of its own.
7. launch/site/mkdocs.yml lists every page of docs/ and of the root.
8. docs/commands.md says of every command of launch/command_list.inc how it is typed.
"""
import os
import re
import sys

SKIPPED = re.compile(r"(\.git|build[^/]*|data|runs|tests/fuzz/corpus|.*__pycache__)$")  # folders, from the root
TOP = ("framework", "include", "kernels", "plugins", "optimizers", "ttt", "launch", "tools", "lab", "configs", "tests", "docs", "cmake")
TEXT = (".md", ".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".py", ".sh", ".bash", ".toml", ".txt", ".cmake", ".in")
SOURCES = (".h", ".hpp", ".cpp", ".cu", ".cuh")
THIS = "tests/end_to_end/documentation."  # holds the patterns and the planted faults

CITED = re.compile(r"\bdocs/([A-Za-z0-9_]+\.md)(?:#([A-Za-z0-9_-]+))?")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
CODE = re.compile(r"`[^`]*`")
PATH = re.compile(r"(?<![\w./<-])(?:%s)/[\w./-]*\w" % "|".join(TOP))
SUFFIXED = re.compile(r"(?<![\w./<*{}-])[a-z_]+/[\w/-]+\.(?:h|hpp|cpp|cuh?|py|sh)\b")
OUTSIDE = re.compile(r"\bspec/|\bspec section|[Ss]pecification of the record|[Ss]pecification: |numerics-and-diagnostics")
PLACEHOLDER = re.compile(r"(^|[/_.])([A-Z]+|x)($|[/_.])")  # NAME, FILE, x.toml
README_LINES = 120
SITE = "launch/site/mkdocs.yml"
COMMANDS = "launch/command_list.inc"
FOREIGN = ("tensorflow/",)  # folders of other projects that comments cite


def anchors(text):
    """The anchors that GitHub gives to the headings of a Markdown text."""
    found = {}
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if fenced or not heading:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = {}
        self.faults = []
        for folder, folders, names in os.walk(root):
            below = os.path.relpath(folder, root) + "/"
            folders[:] = sorted(f for f in folders if not SKIPPED.match((below + f).removeprefix("./")))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if path.endswith(TEXT) or self.is_script(path):
                    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                        self.files[path] = file.read()
        self.anchors = {path: anchors(text) for path, text in self.files.items() if path.endswith(".md")}

    def is_script(self, path):
        if "." in os.path.basename(path):
            return False
        with open(os.path.join(self.root, path), "rb") as file:
            return file.read(2) == b"#!"

    def exists(self, *paths):
        return any(os.path.exists(os.path.join(self.root, path)) for path in paths)

    def fault(self, path, number, what):
        fault = f"{path}:{number}: {what}"
        if fault not in self.faults:
            self.faults.append(fault)

    def check_target(self, path, number, target, anchor):
        if not self.exists(target):
            self.fault(path, number, f"there is no {target}")
        elif anchor and target in self.anchors and anchor not in self.anchors[target]:
            self.fault(path, number, f"{target} has no heading #{anchor}")

    def check_links(self, path, number, line):
        for link in LINK.findall(CODE.sub("", line)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            self.check_target(path, number, os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path,
                              anchor)

    def check_paths(self, path, number, text):
        """Paths of the repository in `text`, from the root; other ones, such as core/files.h, are the end of some path."""
        for found in PATH.findall(text):
            if not PLACEHOLDER.search(found) and not self.exists(found) and not any(
                    name.startswith(found + ".") or name.startswith(found + "_") for name in self.files):
                self.fault(path, number, f"there is no {found}")
        for found in SUFFIXED.findall(text):
            if found.startswith(TOP + FOREIGN) or PLACEHOLDER.search(found):
                continue
            if not any(("/" + name).endswith("/" + found) for name in self.files):
                self.fault(path, number, f"there is no {found}")

    def check_map(self):
        """Folders that the map does not name; the third level below plugins/ counts, too."""
        page = "docs/architecture.md"
        folders = set()
        for path in self.files:
            parts = path.split("/")[:-1]
            if parts and parts[0] in ("framework", "tools", "lab", "plugins", "tests", "optimizers", "ttt"):
                folders.update(parts[1:3 if parts[0] == "plugins" else 2])
        for folder in sorted(folders):
            if not re.search(r"(?<![\w])%s(?![\w])" % re.escape(folder), self.files.get(page, "")):
                self.fault(page, 1, f"does not name the folder {folder}")

    def check_site(self):
        site = os.path.join(self.root, SITE)
        if not os.path.exists(site):
            return
        with open(site, encoding="utf-8") as file:
            listed = set(re.findall(r": (\S+\.md)$", file.read(), re.M))
        for path in self.files:
            if path.endswith(".md") and (path.startswith("docs/") or "/" not in path) and path not in listed:
                self.fault(path, 1, f"{SITE} does not list it")

    def check_commands(self):
        commands = os.path.join(self.root, COMMANDS)
        if not os.path.exists(commands):
            return
        page = "docs/commands.md"
        with open(commands, encoding="utf-8") as file:
            for name in re.findall(r"^MULLIGAN_COMMAND\((\w+)", file.read(), re.M):
                if not re.search(rf"`[^`]*mulligan {name}\b", self.files.get(page, "")):
                    self.fault(page, 1, f"does not say how `mulligan {name}` is typed")

    def check(self):
        self.check_site()
        self.check_commands()
        if "docs/architecture.md" in self.files:
            self.check_map()
        lines = len(self.files.get("README.md", "").splitlines())
        if lines > README_LINES:
            self.fault("README.md", README_LINES + 1, f"has {lines} lines; at most {README_LINES}, move the rest to a page of docs/")
        for path, text in self.files.items():
            if path.startswith(THIS):
                continue
            fenced = False
            for number, line in enumerate(text.splitlines(), 1):
                for name, anchor in CITED.findall(line):
                    if not (path.endswith(".md") and "://" in line):
                        self.check_target(path, number, "docs/" + name, anchor)
                if OUTSIDE.search(line):
                    self.fault(path, number, "cites a page that is not in the repository")
                if path.endswith(".md"):
                    fenced ^= line.startswith("```")
                    if not fenced and not line.startswith("    "):
                        self.check_links(path, number, line)
                        for code in CODE.findall(line):
                            if " " not in code:
                                self.check_paths(path, number, code.strip("`"))
                elif path.endswith(SOURCES) and line.lstrip().startswith("//"):
                    self.check_paths(path, number, line)
        return self.faults


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("documentation.py: needs the root of a tree")
    faults = Tree(sys.argv[1]).check()
    print("\n".join(faults))
    sys.exit(1 if faults else 0)
