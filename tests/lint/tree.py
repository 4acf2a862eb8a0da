"""The source tree as the lint tests see it: our files, their text without comments and literals, and a report of complaints.

A complaint is `path:line: rule: what`; a test fails if there is any.
"""

import pathlib
import re
import sys

CODE = {".h", ".cc", ".c", ".l", ".y"}
FOLDERS = ("arch", "cmd", "lib", "tests", "scripts", ".ci")

# Comments and the contents of string and character literals. A raw string first, since it may hold anything.
_NOISE = re.compile(
    r'R"(?P<fence>[^(\s]*)\(.*?\)(?P=fence)"'
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


def without_noise(text):
    """The text with comments and literals emptied; line numbers stay."""

    def blank(match):
        kept = '""' if match.group().startswith(('"', "R")) else " "
        return kept + "\n" * match.group().count("\n")

    return _NOISE.sub(blank, text)


class Tree:
    """Our files below a root, and what is wrong with them."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.complaints = []

    def files(self, *folders):
        """All files in the folders (default: all of ours), in order, as paths relative to the root."""
        found = []
        for folder in folders or FOLDERS:
            for path in (self.root / folder).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    found.append(path.relative_to(self.root))
        return sorted(found)

    def code(self, *folders):
        return [path for path in self.files(*folders) if path.suffix in CODE]

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def matches(self, path, pattern, text=None):
        """Yields (line number, match) of a pattern in a file's text."""
        text = self.text(path) if text is None else text
        for match in re.finditer(pattern, text):
            yield text.count("\n", 0, match.start()) + 1, match

    def complain(self, path, line, rule, what):
        self.complaints.append(f"{path}:{line}: {rule}: {what}")

    def report(self):
        """Prints the complaints; the exit status."""
        for complaint in self.complaints:
            print(complaint, file=sys.stderr)
        if self.complaints:
            print(f"{len(self.complaints)} complaints", file=sys.stderr)
        return 1 if self.complaints else 0
