"""ktrace on a terminal: what is shown there while a trace runs, and the keys that end it."""
import os
import pty
import re
import select
import signal
import subprocess
import unittest

from live import KTRACE, LIMIT, LiveTest, ktrace, program, wait_until_let_go

ERASE = "\r\033[K"


class Screen:
    """ktrace on a terminal of its own, in whose foreground it is."""

    def __init__(self, test, *arguments, together=False, stdout=subprocess.DEVNULL, env=None):
        master, slave = pty.openpty()
        self.fd, self.text = master, ""
        test.addCleanup(lambda: os.close(self.fd))

        def take_terminal():
            os.setsid()
            # The first terminal that a session opens is its own.
            os.close(os.open(os.ttyname(slave), os.O_RDWR))

        self.process = subprocess.Popen([KTRACE, "attach", *map(str, arguments)], stdin=slave,
                                        stdout=slave if together else stdout, stderr=slave,
                                        preexec_fn=take_terminal, env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **(env or {})})
        os.close(slave)
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def read(self):
        """False: there is no writer any more."""
        if not select.select([self.fd], [], [], LIMIT)[0]:
            raise AssertionError(f"the terminal shows nothing new: {self.text!r}")
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the last one has closed it
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def until(self, pattern):
        while not (found := re.search(pattern, self.text)):
            if not self.read():
                raise AssertionError(f"{pattern} did not come: {self.text!r}")
        return found

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        while self.read():
            pass
        return self.process.wait(LIMIT)

    def shown(self):
        """The lines as they stand on the terminal in the end."""
        return [line.rsplit("\r", 1)[-1].removeprefix("\033[K") for line in self.text.replace("\r\n", "\n").split("\n")]


class Colours(LiveTest):
    """Of errors and of headings, where these go to a terminal that wants them."""

    def said(self, *arguments, env=None):
        screen = Screen(self, *arguments, together=True, env=env)
        while screen.read():
            pass
        screen.process.wait(LIMIT)
        return screen.text.replace("\r\n", "\n")

    def test_an_error(self):
        self.assertEqual(self.said("-p", 1, "-k", "f+"),
                         "\033[1;31mktrace:\033[0m f+: a number is missing behind the +\n"
                         "         \033[1;32m^\033[0m " + "a SPEC is [MODULE:]SYMBOL[+OFFSET], [MODULE:]FILE:LINE, "
                         "0xADDRESS or MODULE:0xVADDR\n")

    def test_headings(self):
        self.assertIn("\033[1mUsage:\033[0m ktrace attach", self.said("--help"))

    def test_none_where_they_are_refused(self):
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertIn("Usage: ktrace attach", self.said("--help", env=env))
            self.assertIn("ktrace: f+: ", self.said("-p", 1, "-k", "f+", env=env))
        self.assertIn("Usage: ktrace attach", ktrace("attach", "--help").out)


class LiveLine(LiveTest):
    def test_rate_and_cost(self):
        """It shows the hits so far, and is gone when the summary comes."""
        target = self.start(program("calls"), 1, 1000)
        screen = Screen(self, "-p", target.pid, "-k", "do_work", "--count")
        screen.until("Attached 1 probe")
        target.tell()
        target.truth("do_work 1000 sum")
        screen.until(re.escape(ERASE) + r"1000 hits, \d+ a second, (?:\d+\.\d us each, )?\d+% of a processor")
        self.assertEqual(screen.stop(), 0)
        shown = [line for line in screen.shown() if line and "^C" not in line]
        self.assertRegex(shown[0], "^ktrace: Attached 1 probe")
        self.assertRegex(shown[1], r"^ktrace: 1000 hits at 1 of 1 place in \S+ m?s: 1000 events, none lost$")
        self.assertEqual(len(shown), 2, shown)
        self.check_untouched(target)

    def test_beside_events_on_the_same_terminal(self):
        """Lines of events, notices and the line itself never share a line."""
        target = self.start(program("calls"), 1, 100)
        screen = Screen(self, "-p", target.pid, "-k", "do_work", together=True)
        screen.until("Attached 1 probe")
        for round in range(1, 4):
            target.tell()
            target.truth("do_work 100 sum")
            screen.until(re.escape(ERASE) + f"{100 * round} hits, ")
        self.assertEqual(screen.stop(), 0)
        shown = [line for line in screen.shown() if line]
        events = [line for line in shown if re.match(r"\033\[2m\d\d:\d\d:\d\d\.\d{6} calls/\d+\033\[0m "
                                                               r"\033\[1mdo_work\033\[0m\+0x0$", line)]
        self.assertEqual(len(events), 300)
        self.assertEqual(sum(" a second" in line for line in shown), 0)
        self.check_untouched(target)

    def test_not_where_it_is_not_wanted(self):
        """With -q, on a terminal that cannot erase, and where standard error is a file."""
        target = self.start(program("calls"), 1, 100)
        for options, kind in ((["-q"], "xterm"), ([], "dumb"), ([], "")):
            screen = Screen(self, "-p", target.pid, "-k", "do_work", "--count", "--duration", "1500ms", *options,
                            env={"TERM": kind})
            while screen.read():
                pass
            self.assertEqual(screen.process.wait(LIMIT), 0)
            self.assertNotIn("\033", screen.text)
        self.check_untouched(target)

    def test_not_beside_a_pipe(self):
        """Who reads the events may show them on the same terminal, where a line of ktrace's would stand in front."""
        target = self.start(program("calls"), 1, 100)
        screen = Screen(self, "-p", target.pid, "-k", "do_work", "--count", "--duration", "1500ms", stdout=subprocess.PIPE)
        table, _ = screen.process.communicate(timeout=LIMIT)
        self.assertEqual(table, b"")
        while screen.read():
            pass
        self.assertNotIn("\033", screen.text)
        self.check_untouched(target)

    def test_a_killed_tracer_leaves_no_half_line(self):
        target = self.start(program("calls"), 1, 100)
        screen = Screen(self, "-p", target.pid, "-k", "do_work", "--count")
        screen.until(r"0 hits, 0 a second")
        with open(f"/proc/{screen.process.pid}/task/{screen.process.pid}/children") as children:
            os.kill(int(children.read()), signal.SIGKILL)
        while screen.read():
            pass
        self.assertIn("\033[1;31mktrace:\033[0m the tracing process was killed by SIGKILL", screen.shown())
        target.tell()
        target.truth("do_work 100 sum")
        self.check_untouched(target)


class Keys(LiveTest):
    """What is typed on ktrace's terminal, or becomes of it, while the threads of a target run through a probe."""

    def begin(self):
        self.target = self.start(program("threads"))
        self.target.tell("spin 4")
        self.target.truth("spinning")
        screen = Screen(self, "-p", self.target.pid, "-r", "do_work", "--count")
        screen.until(r"[1-9]\d* hits, ")
        return screen

    def check_alive(self):
        wait_until_let_go(self.target.pid)
        self.check_untouched(self.target)
        self.target.tell("on")
        self.target.truth("calls")
        self.assertEqual(self.target.end(), 0)

    def test_control_c(self):
        screen = self.begin()
        os.write(screen.fd, b"\x03")
        while screen.read():
            pass
        self.assertEqual(screen.process.wait(LIMIT), 0)
        shown = "\n".join(screen.shown())
        summary = re.search(r"(?m)^ktrace: (\d+) hits at 1 of 1 place in \S+ m?s: (\d+) events(?:, (\d+) in flight)?, none lost",
                            shown)
        self.assertEqual(int(summary[1]), int(summary[2]) + int(summary[3] or 0), shown)
        self.check_alive()

    def test_quit(self):
        """The process that was started ends by it; the one that traces detaches."""
        screen = self.begin()
        os.write(screen.fd, b"\x1c")
        self.assertEqual(screen.process.wait(LIMIT), -signal.SIGQUIT)
        self.check_alive()

    def test_terminal_that_goes_away(self):
        screen = self.begin()
        os.close(screen.fd)
        screen.fd = os.open(os.devnull, os.O_RDONLY)
        self.assertEqual(screen.process.wait(LIMIT), 0)
        self.check_alive()


if __name__ == "__main__":
    unittest.main()
