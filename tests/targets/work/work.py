"""Work for Python: calls, exceptions, generators, C modules; leaves with status 7."""
import collections
import hashlib
import json
import math
import re
import sys
import zlib


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count():
    for i in range(300):
        yield i


class Ordered:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return self.n < other.n


things = collections.OrderedDict((str(i), [i, i * i, {"root": math.sqrt(i)}]) for i in range(300))
text = json.dumps(things)
try:
    for i in range(200):
        try:
            raise ValueError(i)
        except ValueError as e:
            last = e.args[0]
    print(fib(14), len(json.loads(text)), zlib.crc32(zlib.compress(text.encode())), sum(count()), last)
    print(hashlib.sha256(text.encode()).hexdigest(), len(re.findall(r"\d+", text)))
    print([o.n for o in sorted(map(Ordered, [5, 3, 9, 1]))])
finally:
    print("end")
sys.exit(7)
