"""What tests/unit/pages.t checks. `pages.py` checks this tree and prints a line for each fault; `pages.py --try` lays one fault of
each kind into a tree of its own and asks that it is found, and nothing else."""
import fnmatch
import os
import re
import sys
import tempfile

ROOMS = ("base", "kernels", "schema", "stages", "pipelines", "tests", "examples", "docs")
LINES, COLUMNS, ALL_BYTES = 150, 120, 220 << 10

NAME = re.compile(r"(?<![A-Za-z0-9_$])(?:kiln|KILN)_[A-Za-z0-9_]*")
WORD = re.compile(r"[A-Za-z0-9_]+")
TEXT = r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|'  # of a language in which a quoted /* begins nothing
SLASHES = re.compile(TEXT + r"/\*.*?\*/|//[^\n]*", re.S)
COMMENTS = {".sql": re.compile(r"()--[^\n]*")}
COMMENTS.update({e: SLASHES for e in (".c", ".h", ".cu", ".cuh", ".cc", ".def", ".js", ".mjs", ".css", ".map")})
COMMENTS.update({e: re.compile(r"()(?:(?<=\s)|^)#[^\n]*", re.M) for e in (".sh", ".t", ".mk", ".py", ".yaml", "")})
# Parts of a name that stand for any: kiln_NAME_args, KILN_OP_ID.
ANY = {"NAME", "ID", "OP", "FAMILY", "MAP"}
# A path that begins with a room, in a page: kernels/math/real.h, tests/*/lib.sh, schema/{codec,hash}.c.
PATH = re.compile(r"(?<![\w./~$-])(?:%s)/[\w./*{},+@-]*[\w*/}]" % "|".join(ROOMS))
FILE = re.compile(r"`([\w{},*-]+\.(?:c|h|cu|cuh|def|t|mk|sql|map|mjs|py|sh))`")
TEST = re.compile(r"(?<![\w/.-])(?:unit|golden|e2e|fault|gpu|soak)/\w+")  # as tests/run takes it
LINK = re.compile(r"\]\(([^()\s]+)\)")


def files(root):
    out = []
    for top in sorted(os.listdir(root)):
        path = os.path.join(root, top)
        if os.path.isfile(path) and (top.endswith(".md") or top in ("Makefile", "Containerfile")):
            out.append(top)
        for folder, folders, names in os.walk(path) if top in ROOMS else ():
            folders[:] = sorted(f for f in folders if f not in ("node_modules", "__pycache__"))
            out += [os.path.relpath(os.path.join(folder, n), root) for n in sorted(names)]
    return out


def read(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as f:
            return f.read()
    except UnicodeDecodeError:
        return ""


def split(text, pattern):
    """The code of a source file, and its comments, each with its place."""
    comments = []

    def take(m):
        if m.group(1):
            return m.group(0)
        comments.append((m.start(), m.group(0)))
        return " "

    return pattern.sub(take, text), comments


class Names:
    """What names the code has."""

    def __init__(self, codes):
        self.names, self.words, self.siblings = set(), set(), set()
        for code in codes:
            self.names.update(NAME.findall(code))
            self.words.update(WORD.findall(code))
            self.siblings.update(re.findall(r"KILN_CPU\((\w+)\)", code))
        self.sorted = sorted(self.names)
        self.pasted = [n for n in self.names if n.endswith("_") and len(n) > len("kiln_")]  # KILN_PROFILE_##ID

    def has(self, name):
        if name in self.names:
            return True
        if name.endswith("_"):  # kiln_draw_*
            return any(n.startswith(name) for n in self.names)
        if ANY & set(name.split("_")[1:]):
            pattern = re.compile("_".join("[A-Za-z0-9_]+" if w in ANY else w for w in name.split("_")))
            return any(pattern.fullmatch(n) for n in self.names) or any(name.startswith(p) for p in self.pasted)
        sibling = re.fullmatch(r"kiln_(\w+?)_(?:cpu|cuda)(?:_avx2)?", name)
        if sibling and (sibling.group(1) in self.siblings or "kiln_" + sibling.group(1) in self.names):
            return True
        return any(name.startswith(p) and name[len(p):] in self.words for p in self.pasted)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_names(root, all_files, say):
    sources = []
    for path in all_files:
        extension = os.path.splitext(path)[1]
        if extension in COMMENTS and not path.startswith("tests/data/"):
            text = read(root, path)
            sources.append((path, text, *split(text, COMMENTS[extension])))
    names = Names(code for _, _, code, _ in sources)
    for path, text, _, comments in sources:
        for at, comment in comments:
            for m in NAME.finditer(comment):
                if not names.has(m.group(0)):
                    say(path, line_of(text, at + m.start()), f"{m.group(0)} is no name of the code")
    for path in all_files:
        if path.endswith(".md"):
            for i, line in enumerate(read(root, path).split("\n"), 1):
                if path == "CHANGELOG.md" and line.startswith("|"):
                    line = line.split("|", 2)[2]  # the first column has names that went
                for m in NAME.finditer(line):
                    if not names.has(m.group(0)):
                        say(path, i, f"{m.group(0)} is no name of the code")


def spread(path):
    """a/{b,c}.h: a/b.h, a/c.h."""
    m = re.search(r"\{([^{}]*)\}", path)
    return [path] if not m else [p for part in m.group(1).split(",") for p in spread(path[:m.start()] + part + path[m.end():])]


class Tree:
    def __init__(self, all_files):
        self.files, self.folders = set(all_files), set()
        for path in all_files:
            while os.path.dirname(path):
                path = os.path.dirname(path)
                self.folders.add(path)
        self.base = {os.path.basename(p) for p in self.files}
        self.all = self.files | self.folders

    def has(self, path):
        """A file or folder; * and a part in capitals (NAME.c) stand for any; a file of code may lack its suffix."""
        path = re.sub(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])(?!\.md)", "*", path.rstrip("/"))
        if "*" in path:
            return any(fnmatch.fnmatch(p, path) for p in self.all)
        return path in self.all or any(path + s in self.files for s in (".c", ".h", ".t", "_test.c"))

    def has_file(self, name):
        name = re.sub(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])", "*", name)
        return any(fnmatch.fnmatch(b, name) for b in self.base) if "*" in name else name in self.base


def anchors(text):
    """The anchors that GitHub gives to headings."""
    out = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M):
        out.add(re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-"))
    return out


def check_paths(root, all_files, say):
    tree = Tree(all_files)
    for page in (p for p in all_files if p.endswith(".md")):
        text = read(root, page)
        for m in LINK.finditer(text):
            target, _, anchor = m.group(1).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if path not in tree.all and not os.path.exists(os.path.join(root, path)):
                say(page, line_of(text, m.start()), f"the link {m.group(1)} leads nowhere")
            elif anchor and path.endswith(".md") and anchor not in anchors(read(root, path)):
                say(page, line_of(text, m.start()), f"the link {m.group(1)} names no heading")
        if page.startswith("CHANGELOG"):  # what it says was so then
            continue
        for m in PATH.finditer(text):
            if not all(tree.has(p) for p in spread(m.group(0))):
                say(page, line_of(text, m.start()), f"there is no {m.group(0)}")
        for m in TEST.finditer(text):
            if not tree.has("tests/" + m.group(0)):
                say(page, line_of(text, m.start()), f"there is no test {m.group(0)}")
        for m in FILE.finditer(text):
            if not all(tree.has_file(p) for p in spread(m.group(1))):
                say(page, line_of(text, m.start()), f"there is no file {m.group(1)}")


def check_sizes(root, all_files, say):
    total = 0
    for page in (p for p in all_files if os.path.basename(p) == "DESIGN.md"):
        text = read(root, page)
        total += len(text.encode())
        lines = text.split("\n")[:-1]
        if len(lines) > LINES:
            say(page, LINES + 1, f"a DESIGN.md has at most {LINES} lines, not {len(lines)}")
        for i, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                say(page, i, f"a line of a DESIGN.md has at most {COLUMNS} characters, not {len(line)}")
    if total > ALL_BYTES:
        say("DESIGN.md", 0, f"all of them have at most {ALL_BYTES} bytes, not {total}")
    for page in ("schema/SCHEMA.md", "CHANGELOG.md"):
        for i, line in enumerate(read(root, page).split("\n") if page in all_files else (), 1):
            if len(line) > COLUMNS:
                say(page, i, f"a line has at most {COLUMNS} characters here, not {len(line)}")


def check(root):
    faults, all_files = [], files(root)

    def say(path, line, what):
        faults.append(f"{path}:{line}: {what}")

    for one in (check_names, check_paths, check_sizes):
        one(root, all_files, say)
    return faults


def trial(path, text, expected, more=0):
    """A tree with this text in one of its files, and more pages like it, must have the expected fault and no other."""
    with tempfile.TemporaryDirectory() as root:
        tree = {"base/one.h": "/* kiln_one_get; kiln_NAME_get */\nint kiln_one_get(void), KILN_CPU(one_put)(void); /* kiln_one_put_cpu */\n",
                "base/DESIGN.md": "# one\n`one.h` beside base/{one,two}.h, base/*.h, base/one, kiln_one_*; [here](one.h), [there](../GLOSSARY.md#a-word)\n",
                "base/two.h": "", "GLOSSARY.md": "# A word\n"}
        tree[path] = tree.get(path, "") + text
        tree.update((f"tests/more{i}/DESIGN.md", text) for i in range(more))
        for name, content in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)) or root, exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(content)
        faults = check(root)
    if len(faults) != (expected != "") or not all(expected in f for f in faults):
        sys.exit(f"{path} with {text[:60]!r} should have {expected!r}, and has {faults}")


def try_all():
    trial("base/two.h", "", "")
    trial("base/two.h", "// as kiln_gone_get\n", "two.h:1: kiln_gone_get is no name")
    trial("base/two.h", 'const char *s = "/*"; /* KILN_GONE */\n', "two.h:1: KILN_GONE is")
    trial("base/two.h", "\n/*\n * kiln_gone_* */\n", "two.h:3: kiln_gone_ is")
    trial("base/two.h", "/* kiln_gone_put_cpu */\n", "kiln_gone_put_cpu is")
    trial("base/two.h", "/* kiln_NAME_gone */\n", "kiln_NAME_gone is")
    trial("base/run.sh", "true # KILN_GONE\n", "run.sh:1: KILN_GONE is")
    trial("README.md", "`kiln_gone`\n", "README.md:1: kiln_gone is")
    trial("CHANGELOG.md", "| `kiln_gone` | `kiln_one_get` |\n", "")
    trial("CHANGELOG.md", "| `kiln_gone` | `kiln_one_gone` |\n", "kiln_one_gone is")
    trial("README.md", "[x](gone.h)\n", "gone.h leads nowhere")
    trial("README.md", "[x](https://gone)\n", "")
    trial("README.md", "[x](GLOSSARY.md#gone)\n", "GLOSSARY.md#gone names no heading")
    trial("README.md", "see base/gone.h.\n", "there is no base/gone.h")
    trial("README.md", "base/{one,gone}.h\n", "there is no base/{one,gone}.h")
    trial("README.md", "base/NAME.gone\n", "there is no base/NAME.gone")
    trial("README.md", "docs/gone.md\n", "there is no docs/gone.md")
    trial("README.md", "`gone.c`\n", "there is no file gone.c")
    trial("README.md", "make test T=unit/gone\n", "there is no test unit/gone")
    trial("base/DESIGN.md", "x\n" * LINES, "at most 150 lines")
    trial("base/DESIGN.md", "é" * COLUMNS + "\n", "")
    trial("base/DESIGN.md", "x" * (COLUMNS + 1) + "\n", "at most 120 characters")
    trial("schema/SCHEMA.md", "x" * (COLUMNS + 1) + "\n", "SCHEMA.md:1: a line has")
    trial("tests/x/DESIGN.md", ("x" * COLUMNS + "\n") * LINES, "")
    trial("tests/x/DESIGN.md", ("x" * COLUMNS + "\n") * LINES, "", more=11)
    trial("tests/x/DESIGN.md", ("x" * COLUMNS + "\n") * LINES, "at most 225280 bytes", more=12)


if sys.argv[1:] == ["--try"]:
    try_all()
else:
    found = check(".")
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
