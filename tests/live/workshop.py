"""Programs that a live test compiles itself: the variants (flags, compilers, formats) of sources of tests/targets."""
import atexit
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest

# What objdump shows of data and of trap instructions, behind an address: neither can be probed.
NONE = re.compile(r"\(bad\)|^\s*(\.(byte|word|xword|inst)|udf|brk|int3)\b")
SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets")
_room = None
_made = {}


def room():
    """The directory for what this test run makes; gone at its end. KTRACE_ROOM: one that is there, and stays, for many
    runs one behind the other."""
    global _room
    if _room is None:
        _room = os.environ.get("KTRACE_ROOM")
    if _room is None:
        _room = tempfile.mkdtemp(prefix="ktrace-live-")
        atexit.register(shutil.rmtree, _room, ignore_errors=True)
    return _room


def require(tool):
    if shutil.which(tool) is None:
        raise unittest.SkipTest(f"{tool} is not installed")


def execute(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}")
    return done.stdout


def once(path, make):
    """This path, made by make(PATH) where that has not been done in this room."""
    if not os.path.exists(path + ".made"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        make(path)
        open(path + ".made", "w").close()
    return path


def build(name, *flags, sources=None, compiler="gcc"):
    """The path of a program made of tests/targets/NAME.* (or of `sources`), compiled once for these flags."""
    require(compiler)
    key = (name, compiler, flags)
    if key not in _made:
        if sources is None:
            sources = [name + (".cc" if os.path.exists(os.path.join(SOURCES, name + ".cc")) else ".c")]
        mark = hashlib.sha256(repr((key, sources)).encode()).hexdigest()[:16]
        _made[key] = once(os.path.join(room(), mark, name),
                          lambda made: execute(compiler, *[os.path.join(SOURCES, s) for s in sources], "-o", made, *flags))
    return _made[key]


def copy_of(path, label):
    """A copy of a program that a test may change, under the same base name."""
    directory = tempfile.mkdtemp(prefix=label + "-", dir=room())
    return shutil.copy(path, directory)


def instructions(path, symbol):
    """Offsets of the instructions of a function, by objdump."""
    require("objdump")
    offsets, start, inside = [], None, False
    for line in execute("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        if line.endswith(">:"):
            inside = line.split("<")[1] == symbol + ">:"
            if inside:
                start = int(line.split()[0], 16)
        elif inside and ":" in line:
            head, text = line.split(":", 1)
            is_filling = text.split()[:1] in (["nop"], ["nopw"], ["nopl"], ["data16"], ["xchg"], ["cs"])
            if not NONE.search(text) and not is_filling or offsets == []:
                offsets.append(int(head, 16) - start)
    return offsets


def offset_of(path, symbol, pattern):
    """The offset of the first instruction of a function whose text, by objdump, a pattern fits."""
    require("objdump")
    text = execute("objdump", "-d", "--no-show-raw-insn", path)
    body = re.search(rf"^([0-9a-f]+) <{symbol}>:\n((?:.+\n)*)", text, re.M)
    found = re.search(rf"^ *([0-9a-f]+):\s+{pattern}", body[2], re.M)
    return int(found[1], 16) - int(body[1], 16)


def address_in_file(path, symbol):
    """The address of a symbol as nm prints it."""
    require("nm")
    for line in execute("nm", path).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[2] == symbol:
            return int(fields[0], 16)
    raise AssertionError(f"{path} has no {symbol}")
