"""Programs linked, stripped and separated from their names in every way: what a SPEC finds in each."""
import http.server
import os
import re
import shutil
import socket
import tempfile
import threading
import unittest.mock

from live import ktrace
from specs import SpecTest, names
from workshop import address_in_file, copy_of, execute, require, room

OWN_ID = "-Wl,--build-id=0x" + os.urandom(20).hex()  # so that no other test's program is taken for one of these


class Files(SpecTest):
    """Programs of every make, and where their names may come from."""

    def check(self, path, spec="plain_one"):
        self.assertEqual(self.count_of(path, spec), {"plain_one": 5})
        self.assertEqual(self.count_of(path, spec, kind="-r"), {"plain_one": 5})

    def test_file_position_dependent(self):
        self.check(names("-no-pie", "-fno-pie"))

    def test_file_static(self):
        self.check(names("-static"))

    def test_file_static_pie(self):
        self.check(names("-static-pie"))

    def test_file_bound_now(self):
        self.check(names("-Wl,-z,now", "-Wl,-z,relro"))

    def test_file_clang(self):
        self.check(names(compiler="clang"))

    def test_file_separate_code(self):
        self.check(names("-Wl,-z,noseparate-code"))

    def stripped(self, label):
        require("objcopy")
        return copy_of(names(), label)

    def test_file_stripped_has_dynamic_symbols(self):
        path = copy_of(names("-rdynamic"), "dynamic")
        execute("strip", path)
        self.check(path)

    def test_file_stripped_by_address(self):
        path = self.stripped("address")
        address = address_in_file(path, "plain_one")
        execute("strip", path)
        trace = self.hits(path, "-k", f"names:{address:#x}")
        self.assertEqual([s["hits"] for s in trace.summaries()], [5], trace)

    def test_file_stripped_says_so(self):
        path = self.stripped("says")
        execute("strip", path)
        target, _ = self.started(path)
        trace = ktrace("attach", "-p", target.pid, "-k", "plain_one")
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("plain_one", trace.err)
        # A name of a library's that is spelled nearly like it is no reason to be silent about that.
        trace = ktrace("attach", "-p", target.pid, "-k", "prinft")
        self.assertEqual(trace.status, 1, trace)
        self.assertRegex(trace.err, r"did you mean printf.*\? \S+ is stripped: \d+ names? (?:is|are) known; DEBUGINFOD_URLS is not set; probe an address")

    def test_file_stripped_but_for_what_it_exports(self):
        """A name that it exports is rather a slip of the pen; any other one may be of a function whose name is gone."""
        path = copy_of(names("-rdynamic"), "exports")
        execute("strip", path)
        target, _ = self.started(path)
        for spec, lost in (("static_that_is_gone", True), ("plain_ome", False)):
            trace = ktrace("attach", "-p", target.pid, "-k", spec)
            self.assertEqual(trace.status, 1, trace)
            self.assertEqual(" is stripped: " in trace.err, lost, trace)

    def test_file_minidebuginfo(self):
        require("xz")
        path = self.stripped("mini")
        symbols = path + ".symbols"
        execute("objcopy", "-S", "--remove-section", ".comment", "--keep-symbol", "plain_one", path, symbols)
        execute("objcopy", "--only-keep-debug", path, symbols)
        execute("strip", "--strip-debug", symbols)
        execute("xz", "-k", symbols)
        execute("strip", path)
        execute("objcopy", "--add-section", ".gnu_debugdata=" + symbols + ".xz", path)
        os.unlink(symbols)
        self.check(path)

    def separate(self, path):
        debug = path + ".debug"
        execute("objcopy", "--only-keep-debug", path, debug)
        execute("strip", path)
        return debug

    def test_file_debuglink(self):
        path = self.stripped("link")
        debug = self.separate(path)
        execute("objcopy", "--add-gnu-debuglink=" + debug, path)
        self.check(path)
        directory = os.path.join(os.path.dirname(path), ".debug")
        os.mkdir(directory)
        shutil.move(debug, directory)
        self.check(path)
        trace = self.hits(path, "-k", "inlined_twice")
        self.assertEqual(sum(s["hits"] for s in trace.summaries()), 3, trace)

    def test_file_build_id(self):
        if not os.access("/usr/lib/debug" if os.path.exists("/usr/lib/debug") else "/usr/lib", os.W_OK):
            self.skipTest("/usr/lib/debug may not be written")
        path = copy_of(names(OWN_ID), "id")
        debug = self.separate(path)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", execute("readelf", "-n", path))[1]
        home = os.path.join("/usr/lib/debug/.build-id", build_id[:2])
        os.makedirs(home, exist_ok=True)
        kept = os.path.join(home, build_id[2:] + ".debug")
        shutil.move(debug, kept)
        self.addCleanup(os.unlink, kept)
        self.check(path)

    def test_file_by_debuginfod(self):
        path = copy_of(names(OWN_ID), "server")
        build_id = re.search(r"Build ID: ([0-9a-f]+)", execute("readelf", "-n", path))[1]
        debug = self.separate(path)
        with open(debug, "rb") as f:
            served = f.read()
        os.unlink(debug)
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                known = self.path == f"/buildid/{build_id}/debuginfo"
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", str(len(served) if known else 0))
                self.end_headers()
                if known:
                    self.wfile.write(served)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        cache = tempfile.mkdtemp(dir=room())
        where = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}", "DEBUGINFOD_CACHE_PATH": cache}
        with unittest.mock.patch.dict(os.environ, where):
            self.check(path)
        self.assertIn(f"/buildid/{build_id}/debuginfo", asked)

    def test_debuginfod_that_does_not_answer(self):
        """Ctrl-C ends the wait for it."""
        path = copy_of(names(OWN_ID), "silent")
        execute("strip", path)
        target, _ = self.started(path)
        with socket.create_server(("127.0.0.1", 0)) as server:
            where = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.getsockname()[1]}",
                     "DEBUGINFOD_CACHE_PATH": tempfile.mkdtemp(dir=room())}
            tracer = self.attach(target, "-k", "plain_one", wait=False, env=os.environ | where)
            asking, _ = server.accept()
            with asking:
                self.assertIn(b"/buildid/", asking.recv(4096))
                trace = tracer.stop()
        self.assertEqual(trace.status, 1, trace)
        self.assertIn("no function plain_one", trace.err)
        self.check_untouched(target)
        target.tell()
        target.truth("^done")
        self.assertEqual(target.end(), 0)
