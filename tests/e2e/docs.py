"""docs.py check|pages|script|links -- what README.md and docs/*.md show: commands, options, sizes; links once installed (docs.t).

  check               each program, option and make target that a page names exists; pages are short; prints the counts
  pages               prints their paths, as they are read
  script PAGE         prints a bash script of the page's commands, but for those of marked blocks
  links ROOT          each link leads to a file under ROOT, where README.md and docs are installed

A block of commands is fenced by ```sh. It is run, unless a line <!-- not run: REASON --> stands right before it.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys

KILN = os.path.join(os.environ["KILN_BIN"], "kiln")
PAGES = ["README.md"] + sorted(glob.glob("docs/*.md"))
LINES_MAX = {"README.md": 150}
README_BYTES_MAX = 9 * 1024
# Of other people's programs, in the text of a page.
FOREIGN = {"array", "build-arg", "demuxer", "gres", "input-type", "nv", "no-index", "partition", "system-site-packages", "time", "static", "cflags", "libs"}
EVERY_PROGRAM_HAS = {"help", "help-all", "help-json", "man", "version"}
SHELL = {"apt", "apt-get", "bash", "cc", "cd", "cmp", "cp", "echo", "exit", "export", "man", "mkdir", "node", "python3", "ssh", "x264",
         "pkg-config", "sed", "./draw_camera",
         "env/bin/pip", "tests/run"}
faults = []


def say(page, line, text):
    faults.append(f"{page}:{line}: {text}")


def text_of(page):
    with open(page, encoding="utf-8") as f:
        return f.read().split("\n")


def blocks(page):
    """(line of the first command, language, reason or None, lines) of each fenced block."""
    lines, i = text_of(page), 0
    while i < len(lines):
        fence = re.match(r"```(\w*)$", lines[i])
        if fence:
            end = lines.index("```", i + 1)
            mark = re.match(r"<!-- not run: (.+) -->$", lines[i - 1])
            yield i + 2, fence[1], mark and mark[1], lines[i + 1 : end]
            i = end
        i += 1


def prose(page):
    """(line, text) outside of fenced blocks."""
    inside = False
    for number, line in enumerate(text_of(page), 1):
        inside ^= line.startswith("```")
        if not inside and not line.startswith("```"):
            yield number, line


def commands(first, lines):
    """(line, text) of each command, which ends where its quotes are closed and no backslash follows."""
    text = start = None
    for number, line in enumerate(lines, first):
        text, start = (text + "\n" + line, start) if text is not None else (line, number)
        try:
            words = shlex.split(text, comments=True)
        except ValueError:
            continue
        if words:
            yield start, text
        text = None
    if text is not None:
        raise SystemExit(f"line {start}: a quote is not closed: {text}")


def simple_commands(text):
    """The words of each command between |, &&, ; and the like, without redirections and assignments."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words = []
    for word in list(lexer) + [";"]:
        if word and set(word) <= set("|&;()"):
            if words:
                yield words
            words = []
        elif words or not re.match(r"\w+=", word):
            words.append(word)


class Programs:
    """Which commands kiln has, and their options."""

    def __init__(self):
        self.known = {}
        overview = subprocess.run([KILN, "help"], capture_output=True, text=True, check=True).stdout
        self.names = set(re.findall(r"^  ([a-z]+) ", overview, re.M)) | {"help"}
        self.stages = re.findall(r"^STAGE\(([a-z]+),", open("pipelines/stages.def", encoding="utf-8").read(), re.M)

    def options(self, name):
        if name not in self.known:
            said = subprocess.run([KILN, name, "--help-json"], capture_output=True, text=True, check=False).stdout
            self.known[name] = set(EVERY_PROGRAM_HAS)
            for row in json.loads(said)["options"] if said.startswith("{") else []:
                also = {row["name"], row["letter"], *row["aliases"]}
                if row["kind"] == "bool" or "off" in (row["range"] or ""):
                    also |= {"no-" + row["name"]}
                self.known[name] |= also
            if name == "pipeline":
                self.known[name] |= {f"{s}-{o}" for s in self.stages for o in self.options(s) if o}
            if name == "slurm":
                self.known[name] |= self.options("pipeline")
        return self.known[name]

    def all_options(self):
        return set().union(*(self.options(n) for n in self.names - {"help", "completion"}))


def option_name(word):
    match = re.match(r"--?([A-Za-z][\w-]*)", word)
    return match and match[1].replace("_", "-")


def check_kiln(words, programs, told):
    """words: kiln and what follows, or kiln-NAME and what follows."""
    program = os.path.basename(words[0])
    if program == "kiln":
        rest = words[1:]
        name, rest = (rest[0], rest[1:]) if rest and not rest[0].startswith("-") else ("", rest)
    else:
        name, rest = program[len("kiln-") :], words[1:]
    if name and name != "NAME" and name not in programs.names:
        told(f"there is no kiln {name}")
        return
    options = programs.options(name) if name != "NAME" else programs.all_options()
    for word in rest:
        if word == "--":
            break
        option = option_name(word)
        if option and option not in options:
            told(f"kiln {name} has no option {word}")


def make_targets():
    rules = "\n".join(open(f, encoding="utf-8").read() for f in ["Makefile", *glob.glob("*/*.mk"), *glob.glob("*/*/*.mk")])
    return set(re.findall(r"^(?:## )?([a-z][a-z-]*):", rules, re.M)) | set(re.findall(r"^STAGE\(([a-z]+),", open("pipelines/stages.def", encoding="utf-8").read(), re.M))


def check_command(text, programs, targets, told):
    for words in simple_commands(text):
        program = os.path.basename(words[0])
        if program == "kiln" or program.startswith("kiln-"):
            check_kiln(words, programs, told)
        elif program == "make":
            for word in words[1:]:
                if re.match(r"[a-z-]+$", word) and not word.startswith("-") and word not in targets:
                    told(f"there is no target {word}")
        elif words[0] not in SHELL:
            told(f"'{words[0]}' is no program that pages name")


def check_spans(page, programs, targets):
    """Commands and options in the text itself."""
    every = programs.all_options() | FOREIGN
    for number, line in prose(page):
        for span in re.findall(r"`([^`]+)`", line):
            if re.match(r"(kiln|make) [a-zA-Z-]", span) and span.count("'") % 2 == 0:
                check_command(span, programs, targets, lambda text: say(page, number, text))
            for option in re.findall(r"(?:^|[\s(|])--([a-z][\w-]*)", span):
                if option.replace("_", "-") not in every:
                    say(page, number, f"no program has --{option}")


def links(page, root):
    for number, line in prose(page):
        for to in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", line):
            path = os.path.normpath(os.path.join(os.path.dirname(page), to))
            if "://" not in to and not os.path.exists(os.path.join(root, path)):
                say(page, number, f"the link {to} leads to nothing")


def sizes(page):
    lines = text_of(page)
    if len(lines) - 1 > LINES_MAX.get(page, 200):
        say(page, len(lines), f"{len(lines) - 1} lines are too many to read")
    if page == "README.md" and os.path.getsize(page) > README_BYTES_MAX:
        say(page, len(lines), f"{os.path.getsize(page)} bytes are too many to read")
    for number, line in enumerate(lines, 1):
        if len(line) > 120 and not line.startswith("|"):
            say(page, number, f"{len(line)} columns; lines are wrapped at 120")


def exit_codes():
    """Of base/status.h, each in the table of docs/troubleshooting.md."""
    page = "docs/troubleshooting.md"
    told = set(re.findall(r"\d+", " ".join(line.split("|")[1] for line in text_of(page) if re.match(r"\| \d", line))))
    for code in sorted(set(re.findall(r"X\([A-Z_]+, (\d+), ", open("base/status.h", encoding="utf-8").read()))):
        if code not in told:
            say(page, 1, f"no exit code {code}")


def check():
    programs, targets = Programs(), make_targets()
    run = 0
    marked = []
    for page in PAGES:
        for first, language, reason, lines in blocks(page):
            if language != "sh":
                continue
            for number, text in commands(first, lines):
                check_command(text, programs, targets, lambda t: say(page, number, t))
                if reason:
                    marked.append((page, number, reason))
                else:
                    run += 1
        check_spans(page, programs, targets)
        sizes(page)
    contents = "\n".join(text_of("docs/README.md"))
    for page in PAGES[1:]:
        if f"({os.path.basename(page)})" not in contents and page != "docs/README.md":
            say("docs/README.md", 1, f"the table of contents lacks {page}")
    for reason in sorted({r for _, _, r in marked}):
        print(f"not run: {sum(r == reason for _, _, r in marked):3d}  {reason}")
    exit_codes()
    print(f"commands: {run} run, {len(marked)} marked")


def script(page):
    print("set -eu -o pipefail")
    print("at=start; trap 'code=$?; [ $code = 0 ] || echo \"$at: the command ends with $code\"' EXIT")
    for first, language, reason, lines in blocks(page):
        if language == "sh" and not reason:
            for number, text in commands(first, lines):
                print(f"at={page}:{number}\n{text}")


if sys.argv[1] == "script":
    script(sys.argv[2])
elif sys.argv[1] == "pages":
    print("\n".join(PAGES))
elif sys.argv[1] == "links":
    for name in PAGES:
        links(name, sys.argv[2])
else:
    check()
if faults:
    print("\n".join(faults))
    sys.exit(1)
