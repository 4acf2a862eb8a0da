"""Random types and signatures of C and C++: a program that calls functions with known values, and these values as ktrace's
JSON has them."""
import platform
import random

INTEGERS = {"int8_t": (1, True), "uint8_t": (1, False), "int16_t": (2, True), "uint16_t": (2, False), "int32_t": (4, True),
            "uint32_t": (4, False), "int64_t": (8, True), "uint64_t": (8, False)}
FLOATS = {"float": 4, "double": 8, "long double": 16}
# That members ask for. Of arm64 the manual says what is wrong behind 16.
ALIGNMENTS = (8,) if platform.machine() == "aarch64" else (8, 16)


class Generator:
    def __init__(self, seed, is_cxx):
        self.random = random.Random(f"{seed}-{is_cxx}")
        self.is_cxx = is_cxx
        self.declarations = []
        self.numbers = 0
        self.unions = set()

    def number(self):
        self.numbers += 1
        return self.numbers

    # A type is (declaration of a NAME of it, a function that makes (initializer, what JSON has)).

    def integer(self, name):
        size, signed = INTEGERS[name]
        value = self.random.getrandbits(8 * size) if self.random.random() < 0.7 else self.random.choice([0, 1, 2])
        if signed and value >> (8 * size - 1):
            value -= 1 << (8 * size)
        text = f"{value}" if value != -(1 << 63) else "(-9223372036854775807LL - 1)"
        return f"({name}){text}{'ULL' if not signed and size == 8 else 'LL' if size == 8 and 'LL' not in text else ''}", value

    def real(self, name):
        value = self.random.randrange(-4000, 4000) / 4
        return f"({name}){value}", value

    def narrow(self):
        name = self.random.choice([*INTEGERS, "float", "double"])
        return f"{name} NAME", lambda: self.real(name) if name in FLOATS else self.integer(name)

    def scalar(self):
        kind = self.random.choice(["integer"] * 5 + ["real"] * 3 + ["bool", "enum", "wide", "pointer", "complex"])
        if kind == "integer":
            name = self.random.choice(list(INTEGERS))
            return f"{name} NAME", lambda: self.integer(name)
        if kind == "real":
            name = self.random.choice(["float", "double", "double", "long double"])
            return f"{name} NAME", lambda: self.real(name)
        if kind == "bool":
            return "bool NAME", lambda: self.random.choice([("true", True), ("false", False)])
        if kind == "enum":
            return "enum color NAME", lambda: self.random.choice([(n, n) for n in ("red", "green", "blue")])
        if kind == "wide":
            def wide():
                value = self.random.randrange(-2 ** 100, 2 ** 100)
                return (f"(__int128)(((unsigned __int128){(value >> 64) & (2 ** 64 - 1)}ULL << 64) | "
                        f"{value & (2 ** 64 - 1)}ULL)", value)
            return "__int128 NAME", wide
        if kind == "pointer":
            def pointer():
                value = self.random.getrandbits(47)
                return f"(void *){value}UL", hex(value)
            return "void *NAME", pointer
        if self.is_cxx:
            return self.scalar()
        part = self.random.choice(["float", "double", "long double", "int"])

        def complex_():
            real, imaginary = self.random.randrange(-99, 99), self.random.randrange(-99, 99)
            return f"({part} _Complex)({real} + {imaginary} * ({part} _Complex)1i)", [real, imaginary]
        return f"{part} _Complex NAME", complex_

    def vector(self):
        name, size = self.random.choice([("uint8_t", 1), ("int16_t", 2), ("int32_t", 4), ("float", 4), ("double", 8),
                                         ("int64_t", 8)])
        total = max(size, self.random.choice([4, 8, 16, 16]))
        count = total // size
        tag = f"v{self.number()}"
        self.declarations.append(f"typedef {name} {tag} __attribute__((vector_size({total})));")

        def value():
            all_of = [self.real(name) if name in FLOATS else self.integer(name) for _ in range(count)]
            return f"({tag}){{{', '.join(text for text, _ in all_of)}}}", [each for _, each in all_of]
        return f"{tag} NAME", value

    def array(self, depth):
        element, make = self.scalar() if self.random.random() < 0.7 else self.type(depth + 1)
        count = self.random.randrange(1, 4)

        def value():
            all_of = [make() for _ in range(count)]
            json = [each for _, each in all_of]
            return f"{{{', '.join(text for text, _ in all_of)}}}", json if self.is_cxx or leaves(json) else []
        return element.replace("NAME", f"NAME[{count}]"), value

    def bits(self):
        name = self.random.choice(["int32_t", "uint32_t", "int64_t", "uint16_t", "uint8_t"])
        size, signed = INTEGERS[name]
        width = self.random.randrange(1, 8 * size)  # of all bits: clang's debug information has it elsewhere

        def value():
            number = self.random.getrandbits(width)
            if signed and number >> (width - 1):
                number -= 1 << width
            return f"({name})({number}LL)" if number != -(1 << 63) else "(-9223372036854775807LL - 1)", number
        if name == "uint8_t" and self.random.random() < 0.5:
            return "bool NAME : 1", lambda: self.random.choice([("true", True), ("false", False)])
        return f"{name} NAME : {width}", value

    def record(self, depth, is_base=False):
        tag = f"r{self.number()}"
        bases = []
        if self.is_cxx and depth < 2 and self.random.random() < 0.3:
            bases = [self.record(depth + 1, is_base=True) for _ in range(self.random.randrange(1, 3))]
        packed = self.random.random() < 0.25
        is_union = not bases and not is_base and self.random.random() < 0.1
        members = []
        for i in range(self.random.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]) or (1 if is_union else 0)):
            roll = self.random.random()
            if roll < 0.2 and not is_union:
                declared, make = self.bits()
            elif packed:  # whose alignment on the stack cannot be known where a member's own is more than 8
                declared, make = self.narrow()
            elif roll < 0.35 and not is_union:
                declared, make = self.array(depth + 1)
            elif roll < 0.5 and depth < 2 and not is_union:
                declared, make = self.record_type(depth + 1)
            elif roll < 0.55 and not packed:
                declared, make = self.vector()
            else:
                declared, make = self.scalar()
            if not packed and " : " not in declared and self.random.random() < 0.05:
                alignment = self.random.choice([8, 16])
                declared += f" __attribute__((aligned({alignment})))" if alignment in ALIGNMENTS else ""
            members.append((f"m{i}", declared.replace("NAME", f"m{i}"), make))
        if is_union:
            members = members[:1]
        attributes = "__attribute__((packed)) " if packed else ""
        if self.random.random() < 0.08 and members:
            attributes += f"__attribute__((aligned({self.random.choice([8, 16, 32])}))) "
        body = " ".join(f"{declared};" for _, declared, _ in members)
        if self.is_cxx and self.random.random() < 0.15:
            body += f" ~{tag}() {{}}"  # it is passed by its address
        behind = ", ".join(name for name, _ in bases)
        self.declarations.append(f"{'union' if is_union else 'struct'} {attributes}{tag}{' : ' if behind else ''}{behind} {{ {body} }};")

        def value():
            texts, json = [], {}
            for name, make in bases:
                text, each = make()
                texts.append(text)
                json[name] = each
            for name, _, make in members:
                text, json[name] = make()
                texts.append(text)
            return f"{{{', '.join(texts)}}}", json
        if is_union:
            self.unions.add(tag)
        return tag, value

    def record_type(self, depth):
        tag, value = self.record(depth)
        keyword = "" if self.is_cxx else "union " if tag in self.unions else "struct "
        return f"{keyword}{tag} NAME", value

    def type(self, depth=0):
        roll = self.random.random()
        if roll < 0.5 and depth < 3:
            return self.record_type(depth)
        if roll < 0.6:
            return self.vector()
        return self.scalar()

    def program(self, functions):
        """The source, and for each call its function, the JSON of its arguments and of its result."""
        lines, calls, expected = [], [], []
        for n in range(functions):
            parameters = [self.type() for _ in range(self.random.randrange(1, 8))]
            result, make_result = self.type()
            values = [make() for _, make in parameters]
            result_text, result_json = make_result()
            declared = ", ".join(p.replace("NAME", f"p{i}") for i, (p, _) in enumerate(parameters))
            pinned = ", ".join(f'"r"(&p{i})' for i in range(len(parameters)))
            plain = result.replace("NAME", "").strip()
            lines.append(f"{result.replace('NAME', f'made{n}')} = {result_text};")
            for i, ((p, _), (text, _)) in enumerate(zip(parameters, values)):
                lines.append(f"{p.replace('NAME', f'a{n}_{i}')} = {text};")
            lines.append(f"APART {plain} f{n}({declared}) {{ __asm__ volatile(\"\" : : {pinned} : \"memory\"); return made{n}; }}"
                         if len(parameters) <= 5 else
                         f"APART {plain} f{n}({declared}) {{ const void *volatile all[] = {{"
                         + ", ".join(f"&p{i}" for i in range(len(parameters)))
                         + f"}}; __asm__ volatile(\"\" : : \"r\"(all) : \"memory\"); return made{n}; }}")
            calls.append(f"{{ __typeof__(&f{n}) volatile f = f{n}; f({', '.join(f'a{n}_{i}' for i in range(len(parameters)))}); }}")
            expected.append((f"f{n}", {f"p{i}": json for i, (_, json) in enumerate(values)}, result_json))
        head = ["#include <stdint.h>", "#include <stdbool.h>", "#define APART __attribute__((noinline))",
                "enum color { red, green = 5, blue };"]
        if self.is_cxx:
            lines = [line.replace("APART ", 'extern "C++" APART ') if line.startswith("APART") else line for line in lines]
        return "\n".join(head + self.declarations + lines + ["int main(void) {"] + calls + ["return 0;", "}", ""]), expected


def without_empty(json):
    """An empty class is left out where it is a base."""
    if isinstance(json, dict):
        return {key: inner for key, value in json.items() if (inner := without_empty(value)) != {}}
    return [without_empty(value) for value in json] if isinstance(json, list) else json


def leaves(json):
    """How many values of their own there are in one."""
    if isinstance(json, dict):
        return sum(map(leaves, json.values()))
    if isinstance(json, list):
        return sum(map(leaves, json))
    return 1
