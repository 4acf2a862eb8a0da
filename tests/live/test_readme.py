"""The README's examples: their commands print what stands below them, but for numbers, names of users and bars."""
import os
import re
import shlex

from live import LiveTest, ktrace
from workshop import SOURCES, build

ROOT = os.path.dirname(os.path.dirname(SOURCES))


def examples():
    """The commands of the first block, each with the lines below it."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        block = readme.read().split("```")[1]
    for example in block.strip().split("\n$ ktrace "):
        command, *lines = example.removeprefix("$ ktrace ").splitlines()
        yield command, [line for line in lines if line and line != "…"]


def shape(line):
    line = re.sub(r", \d+ (filtered|in flight)", "", line)
    line = re.sub(r'"(alice|bob|carol|dave)"', "USER", line)
    line = re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
    line = re.sub(r"\b[\d.:]+ ?(ns|us|ms|s)\b", "TIME", line)
    line = re.sub(r"READ|WRITE|SCAN", "OP", line)
    line = re.sub(r"\|@* *\|", "BAR", line)
    return re.sub(r" *[\d][\d.:]*", " N", line)


class Readme(LiveTest):
    def test_the_examples(self):
        server = self.start(build("sample-server", "-O2", "-g", "-pthread", sources=["../../examples/server.c"]), "60",
                            ready=r"\d+")
        found = list(examples())
        self.assertEqual(len(found), 3)
        for command, shown in found:
            arguments = shlex.split(command)
            arguments[arguments.index("-p") + 1] = server.pid
            if "--duration" in arguments:  # it is as well shown in less time
                arguments[arguments.index("--duration") + 1] = "700ms"
            trace = ktrace(*arguments)
            self.assertEqual(trace.status, 0, trace)
            printed = {shape(line) for line in (trace.out + trace.err).splitlines()}
            for line in shown:
                self.assertIn(shape(line), printed, trace)
        server.kill()
