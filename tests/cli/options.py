#!/usr/bin/env python3
"""Compares the options that the help of the commands shows with those of the man page or of a shell's completion, both ways.

usage: options.py KTRACE SOURCE_DIRECTORY man|bash|zsh|fish
"""
import re
import subprocess
import sys

COMMANDS = ["attach", "run", "stack", "profile", "diff", "list", "ctl", "repair", "plugin", "bench", "doctor"]


def options_of_help(ktrace):
    """Those of all commands together, long and short."""
    found = set()
    for command in COMMANDS:
        text = subprocess.run([ktrace, command, "--help"], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            names = re.match(r"  (?:-\w, |    )--[\w-]+(?:, -\w, --[\w-]+)*", line)
            if names:
                found.update(re.findall(r"--?[\w-]+", names[0]))
    return found


def options_of_man(text):
    """The options that have an entry (.It), long and short."""
    found = set()
    for line in re.findall(r"^\.It Fl (.*)$", text, re.MULTILINE):
        for name in re.findall(r"(?:^|, )-?([\w-]+)", line.split(" Ar ")[0].split(" Ns ")[0]):
            found.add(("-" if len(name) == 1 else "--") + name)
    return found


def options_of_shell(text):
    """Words that are options; comments and the names of functions are none."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+\b", text))


def options_of_fish(text):
    found = set()
    for line in re.findall(r"^complete -c ktrace .*$", text, re.MULTILINE):
        line = re.sub(r"'[^']*'", "", line)
        found.update("--" + name for name in re.findall(r" -l ([\w-]+)", line))
        found.update("-" + name for name in re.findall(r" -s (\w)", line))
    return found


def compare(name, wanted, found):
    for option in sorted(wanted - found):
        print(f"{name} does not have {option}")
    for option in sorted(found - wanted):
        print(f"{name} has {option}, which --help does not show")
    return wanted == found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check(ktrace, source, what):
    wanted = options_of_help(ktrace)
    if len(wanted) < 20:
        sys.exit(f"--help shows only {sorted(wanted)}")
    long_ones = {option for option in wanted if option.startswith("--")}
    if what == "man":
        return compare("the man page", wanted, options_of_man(read(f"{source}/man/ktrace.1")))
    if what == "bash":
        return compare("bash's completion", long_ones, options_of_shell(read(f"{source}/completions/ktrace.bash")))
    if what == "zsh":
        return compare("zsh's completion", long_ones, options_of_shell(read(f"{source}/completions/_ktrace")))
    return compare("fish's completion", wanted, options_of_fish(read(f"{source}/completions/ktrace.fish")))


sys.exit(0 if check(sys.argv[1], sys.argv[2], sys.argv[3]) else 1)
