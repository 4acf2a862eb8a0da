#!/usr/bin/env python3
"""Runs a file of transcripts: what is typed, and what must come back.

A file holds cases, separated by lines that begin with NAME:

    NAME an unknown option is named
    RUN ktrace attach -p 1 --rett do_work
    STATUS 2
    EXPECT ktrace: there is no option --rett; did you mean --ret?

RUN is a shell command, in which `ktrace` is the binary under test; it runs in an empty directory of its own. STATUS is
its exit status (0 where it is left out). EXPECT lines are the output, standard error included, in this order and with
nothing else between, before or behind. EXPECT_RE is one such line as a regular expression; EXPECT_SOME is a regular
expression that must be found somewhere in the output, the other lines being free then. A # starts a comment.

usage: transcript.py KTRACE FILE
"""
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 300  # seconds until something is taken to hang


class Case:
    def __init__(self, name, line):
        self.name, self.line, self.run, self.status, self.lines, self.some = name, line, None, 0, [], []


def parse(path):
    cases = []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            text = text.rstrip("\n")
            if not text or text.startswith("#"):
                continue
            word, _, rest = text.partition(" ")
            if word == "NAME":
                cases.append(Case(rest, number))
            elif word == "RUN" and cases:
                cases[-1].run = rest
            elif word == "STATUS" and cases:
                cases[-1].status = int(rest)
            elif word == "EXPECT" and cases:
                cases[-1].lines.append(re.escape(rest))
            elif word == "EXPECT_RE" and cases:
                cases[-1].lines.append(rest)
            elif word == "EXPECT_SOME" and cases:
                cases[-1].some.append(rest)
            else:
                sys.exit(f"{path}:{number}: not understood: {text}")
    return cases


def complaints(case, status, output):
    if status != case.status:
        yield f"exit status {status}, expected {case.status}"
    for wanted in case.some:
        if not re.search(wanted, output, re.MULTILINE):
            yield f"not found: {wanted}"
    got = output.splitlines()
    if case.some and not case.lines:
        return
    for index in range(max(len(got), len(case.lines))):
        shown = got[index] if index < len(got) else "(nothing)"
        wanted = case.lines[index] if index < len(case.lines) else None
        if wanted is None:
            yield f"line {index + 1}: unexpected: {shown}"
        elif index >= len(got) or not re.fullmatch(wanted, shown):
            yield f"line {index + 1}: {shown}\n    expected: {wanted}"


def run(case, ktrace):
    environment = dict(os.environ, LC_ALL="C.UTF-8", PATH=f"{os.path.dirname(ktrace)}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(["bash", "-c", case.run], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def main():
    ktrace, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    cases = parse(path)
    if not cases:
        sys.exit(f"{path}: no cases")
    failed = 0
    for case in cases:
        status, output = run(case, ktrace)
        found = list(complaints(case, status, output))
        for complaint in found:
            print(f"{path}:{case.line}: {case.name}: {complaint}")
        failed += bool(found)
    print(f"{len(cases) - failed} of {len(cases)} passed")
    sys.exit(1 if failed else 0)


main()
