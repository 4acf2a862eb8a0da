#!/usr/bin/env python3
"""Compares the options that --help shows with those of the man page or of a shell's completion, both ways.

usage: options.py KTRACE SOURCE_DIRECTORY help|man|bash|zsh|fish
"""
import re
import subprocess
import sys

COMMANDS = ["attach", "run", "list", "ctl", "repair"]


def options_of_help(ktrace, *arguments):
    text = subprocess.run([ktrace, *arguments, "--help"], capture_output=True, text=True, check=True).stdout
    found = set()
    for line in text.splitlines():
        option = re.match(r"  (?:-(\w), |    )--([\w-]+)", line)
        if option:
            found.add("--" + option[2])
            if option[1]:
                found.add("-" + option[1])
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
    if what == "help":
        together = set().union(*(options_of_help(ktrace, command) for command in COMMANDS))
        return compare("the help of the commands together", wanted, together)
    if what == "man":
        return compare("the man page", wanted, options_of_man(read(f"{source}/man/ktrace.1")))
    if what == "bash":
        return compare("bash's completion", long_ones, options_of_shell(read(f"{source}/completions/ktrace.bash")))
    if what == "zsh":
        return compare("zsh's completion", long_ones, options_of_shell(read(f"{source}/completions/_ktrace")))
    return compare("fish's completion", wanted, options_of_fish(read(f"{source}/completions/ktrace.fish")))


sys.exit(0 if check(sys.argv[1], sys.argv[2], sys.argv[3]) else 1)
