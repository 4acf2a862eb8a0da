"""Processes that lay something in ktrace's way: what it reads of them must not hold it up or lead it elsewhere."""
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import zlib

import workshop
from live import LiveTest, adds_up, ktrace, program

MEMORY = 1 << 20  # KiB that ktrace may take, with the sanitizers too; the tables claim 5 GiB


class Crafted(LiveTest):
    def check(self, way, mappings):
        """repair and attach end, say what they found, and the process works on."""
        target = self.start(program("crafted"), way)
        said = ktrace("repair", "-p", target.pid)
        self.assertEqual(said.status, 0, said)
        taken = re.search(r"left: (?:\d+ traps?, )?(\d+) mappings?|(nothing) to repair", said.err)
        self.assertEqual(taken and taken[1], mappings, said)
        tracer = self.attach(target, "-k", "do_work", "--count", "--format", "json")
        target.tell()
        target.truth(r"calls 10\b")
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 10), trace)
        self.assertTrue(adds_up(trace.summary("do_work")))
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MEMORY)
        target.tell()
        target.truth(r"calls 20\b")
        self.assertEqual(target.end(), 0)

    def test_nothing(self):
        self.check("nothing", None)

    def test_tables_of_millions(self):
        self.check("entries", "2")

    def test_slots_everywhere(self):
        self.check("slots", "1")

    def test_nonsense(self):
        self.check("nonsense", "1")

    def test_a_page_of_an_older_version(self):
        self.check("older", "1")

    def test_a_thread_that_stays_in_a_page(self):
        target = self.start(program("crafted"), "stays")
        said = ktrace("repair", "-p", target.pid)
        self.assertEqual(said.status, 0, said)
        self.assertIn("1 mapping", said.err)

    def split_program(self):
        """A program with its debug information in a .dwo file, and that file."""
        directory = tempfile.mkdtemp(dir=workshop.room())
        shutil.copy(os.path.join(workshop.SOURCES, "calls.c"), directory)
        made = os.path.join(directory, "calls")
        subprocess.run(["gcc", "-g", "-gsplit-dwarf", "-O1", "-pthread", "calls.c", "-o", made], cwd=directory, check=True)
        parts = [os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".dwo")]
        self.assertEqual(len(parts), 1)
        return made, parts[0]

    def listed(self, path, *options):
        """What `list` says of do_work, in bounded memory and time."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        said = ktrace("list", path, "do_work", *options)
        self.assertLess(max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, before), MEMORY)
        self.assertEqual(said.status, 0, said)
        return said

    def test_split_debug_information(self):
        made, part = self.split_program()
        whole = self.listed(made)
        self.assertRegex(whole.out, r"do_work\(long int n, ")
        self.assertEqual(whole.err, "")
        os.unlink(part)
        said = self.listed(made)
        self.assertRegex(said.out, r"(?m) do_work \[calls\]")
        self.assertEqual(said.err.count(f"{part}, which has debug information of it, is not there; "), 1, said)
        os.mkfifo(part)  # opening it would wait for ever
        self.assertIn(f"{part} is not a regular file", self.listed(made).err)

    def test_shared_debug_information_that_cannot_be_opened(self):
        """.gnu_debugaltlink names a FIFO: opening it would wait for ever."""
        made = workshop.copy_of(workshop.build("calls", "-g", "-O1", "-pthread"), "shared")
        with tempfile.NamedTemporaryFile() as link:
            link.write(b"shared.alt\0" + bytes(range(20)))
            link.flush()
            subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={link.name}", made], check=True)
        other = os.path.join(os.path.dirname(made), "shared.alt")
        self.assertRegex(self.listed(made).out, r"do_work\(long int n, ")  # it is not needed, and not there
        os.mkfifo(other)
        self.addCleanup(os.unlink, other)
        said = self.listed(made)
        self.assertRegex(said.out, r"(?m) do_work \[calls\]")
        self.assertIn(f"{other} is not a regular file", said.err)

    def test_sections_that_expand_to_gigabytes(self):
        """4 GiB of zeros in 4 MiB, behind what the section has."""
        path = workshop.copy_of(workshop.build("calls", "-g", "-gz=zlib", "-O1", "-pthread"), "bomb")
        with open(path, "rb") as file:
            image = bytearray(file.read())
        headers, = struct.unpack_from("<Q", image, 0x28)
        count, names = struct.unpack_from("<HH", image, 0x3c)
        names_at = struct.unpack_from("<Q", image, headers + 64 * names + 24)[0]
        for number in range(count):
            header = list(struct.unpack_from("<IIQQQQIIQQ", image, headers + 64 * number))
            name = names_at + header[0]
            if image[name:image.index(0, name)] != b".debug_str":
                continue
            data = zlib.decompress(image[header[4] + 24:header[4] + header[5]])
            packer, size = zlib.compressobj(9), 4 << 30
            packed = bytearray(packer.compress(data))
            packed += packer.flush(zlib.Z_FULL_FLUSH)
            once = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
            packed += once * ((size - len(data)) >> 24)
            header[4], header[5] = len(image), 24 + len(packed)
            image += struct.pack("<IIQQ", 1, 0, size, 1) + packed
            struct.pack_into("<IIQQQQIIQQ", image, headers + 64 * number, *header)
            break
        else:
            self.fail("there is no .debug_str")
        with open(path, "wb") as file:
            file.write(image)
        said = self.listed(path)
        self.assertRegex(said.out, r"(?m) do_work \[calls\]")
        self.assertRegex(said.err, r"its section \.debug_str of \d+ bytes claims to expand to 4294967296: it is crafted")

    def test_a_debug_file_that_is_cut_while_it_is_read(self):
        path = workshop.copy_of(workshop.build("calls", "-g", "-O1", "-pthread"), "cut")
        debug = path + ".debug"
        workshop.execute("objcopy", "--only-keep-debug", path, debug)
        workshop.execute("strip", path)
        workshop.execute("objcopy", "--add-gnu-debuglink=" + debug, path)
        target = self.start(path, 2, 500)
        tracer = self.attach(target, "-j", "do_work", "--format", "json")
        os.truncate(debug, 4096)
        for words in (["-j", "worker"], ["-k", "calls.c:27"], ["-k", "worker", "--print", "args.arg"], ["-w", "calls_each"]):
            ktrace("ctl", "-p", target.pid, "add", *words)  # what is gone is not found; none of it is an end
        self.assertEqual(ktrace("ctl", "-p", target.pid, "list").status, 0)
        target.tell()
        target.truth(r"do_work 1000 sum")
        trace = tracer.stop()
        self.assertEqual((trace.status, trace.summary("do_work")["hits"]), (0, 1000), trace)
        self.assertTrue(adds_up(trace.summary("do_work")))
        self.assertIn(f"{debug} was cut short while ktrace read it", trace.err)

    def test_thousands_of_pages(self):
        self.check("pages", "64")
