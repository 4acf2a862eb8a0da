# list: what can be probed in a file or process.

NAME functions with their types, in order of address
RUN printf 'struct p { int x; };\nint add(int a, struct p *p) { return a + p->x; }\nchar *name(void) { return "n"; }\nint main(void) { return 0; }\n' >a.c && cc -g -O0 -o a a.c && ktrace list ./a | grep -E '(add|name|main)\(' | sed 's/^[0-9a-f]* //; s, /.*/, ,'
EXPECT int add(int a, struct p *p) [a] a.c:2
EXPECT char *name(void) [a] a.c:3
EXPECT int main(void) [a] a.c:4

NAME the address is the one that nm prints
RUN printf 'int f(void) { return 1; }\nint main(void) { return f(); }\n' >a.c && cc -O0 -o a a.c && diff <(ktrace list ./a f | cut -d' ' -f1) <(nm a | awk '$3 == "f" { print $1 }')

NAME lines of a function
RUN printf 'int f(int a)\n{\n    a++;\n    return a;\n}\nint main(void) { return f(1); }\n' >a.c && cc -g -O0 -o a a.c && ktrace list ./a f --lines | sed 's/^[0-9a-f]* *//; s,[^ ]*/a.c,a.c,'
EXPECT int f(int a) [a] a.c:1
EXPECT_RE a\.c:2 f\+0x0 \[a\]
EXPECT_RE a\.c:3 f\+0x[0-9a-f]+ \[a\]
EXPECT_RE a\.c:4 f\+0x[0-9a-f]+ \[a\]
EXPECT_RE a\.c:5 f\+0x[0-9a-f]+ \[a\]

NAME inlined instances
RUN printf 'volatile int v;\nstatic inline __attribute__((always_inline)) int twice(int a) { v = a; return a * 2; }\nint one(int a) { return twice(a); }\nint main(void) { return one(1) + twice(v); }\n' >a.c && cc -g -O2 -o a a.c && ktrace list ./a twice --inlines | sed 's/^[0-9a-f]* *//' | sort -u
EXPECT twice inlined into main [a]
EXPECT twice inlined into one [a]

NAME C++ names, plain and with parameters
RUN printf 'namespace n { struct S { int get(int a) const; }; int S::get(int a) const { return a; } }\nint main() { return n::S().get(0); }\n' >a.cc && c++ -g -O0 -o a a.cc && ktrace list ./a 'n::S::get' | grep -o 'int n::S::get(.*int a)' && ktrace list ./a 'n::S::get(int) const' | grep -c get
EXPECT_RE int n::S::get\(.*int a\)
EXPECT 1

NAME a glob
RUN printf 'int do_a(void) { return 1; }\nint do_b(void) { return 1; }\nint main(void) { return 0; }\n' >a.c && cc -g -O0 -o a a.c && ktrace list ./a 'do_*' | wc -l
EXPECT 2

NAME no such name suggests the nearest
RUN printf 'int do_work(void) { return 1; }\nint main(void) { return 0; }\n' >a.c && cc -o a a.c && ktrace list ./a do_wrk
STATUS 1
EXPECT ktrace: no function fits `do_wrk' in a; did you mean do_work?

NAME a running process
RUN printf '#include <stdio.h>\n#include <unistd.h>\nint do_work(void) { return 1; }\nint main(void) { puts("ready"); fflush(stdout); for (;;) pause(); }\n' >a.c && cc -o a a.c && mkfifo pipe && { ./a >pipe & } && read -r _ <pipe; ktrace list -p $! a:do_work | sed 's/^[0-9a-f]* //'; ktrace list -p $! 'libc:getpid' | grep -c 'getpid.*\[libc.so.6\]'; kill $!
EXPECT do_work [a]
EXPECT 1

NAME no such file
RUN ktrace list ./nothing
STATUS 1
EXPECT_SOME ^ktrace: .*\./nothing

NAME a file that is no program
RUN echo hello >text && ktrace list ./text
STATUS 1
EXPECT_SOME ^ktrace: .*\./text.*ELF

NAME no such process
RUN ktrace list -p 2147483000
STATUS 1
EXPECT ktrace: there is no process 2147483000; pidof NAME prints the number

NAME lines without debug information
RUN printf 'int main(void) { return 0; }\n' >a.c && cc -o a a.c && ktrace list ./a main --lines
STATUS 1
EXPECT_SOME ^ktrace: lines and inlined functions are not known: a: .*; compile it with -g, or install its debug symbols$

NAME a name means what it means in a SPEC
RUN printf 'namespace shop { struct Till { int add(int); int add(const char *); }; int Till::add(int n) { return n; } int Till::add(const char *) { return 1; } }\nint main() { return 0; }\n' >t.cc && c++ -o t t.cc && ktrace list ./t 'shop::Till::add(char const *)'
EXPECT_SOME shop::Till::add\(char const\*\) \[t\]$

NAME a version chooses among the functions of one name
RUN ktrace list /lib/x86_64-linux-gnu/libc.so.6 memcpy@GLIBC_2.2.5 | cut -d ' ' -f 2-
EXPECT memcpy@GLIBC_2.2.5 [libc.so.6]

NAME a reader that goes away early is no error
RUN ktrace list /lib/x86_64-linux-gnu/libc.so.6 2>&1 | head -n 1 | wc -l; echo "${PIPESTATUS[0]}"
EXPECT 1
EXPECT 0

NAME a variable of a stripped program, by its name
RUN printf 'long exported = 1; long twice(long n) { return n * exported; } int main(void) { return (int)twice(0); }' > a.c; cc -rdynamic -s -o a a.c && ktrace list ./a exported; ktrace list ./a 'no*such'
STATUS 1
EXPECT_RE [0-9a-f]{16} exported \(a variable, 8 bytes\) \[a\]
EXPECT_RE ktrace: a is stripped: \d+ names are known; DEBUGINFOD_URLS is not set
EXPECT_RE ktrace: no function fits `no\*such' in a; a is stripped: \d+ names are known; DEBUGINFOD_URLS is not set

NAME a glob that finds little in a stripped program, and a variable by its symbol
RUN printf 'long exported = 1; long twice(long n) { return n * exported; } int main(void) { return (int)twice(0); }' > a.c; cc -rdynamic -s -o a a.c && ktrace run -j 'twic*' --print 'arg0, var.exported' --format json ./a 2>errors | grep -o '"values":{[^}]*}'; head -1 errors
EXPECT "values":{"arg0":0,"var.exported":1}
EXPECT_RE ktrace: a is stripped: \d+ names are known; DEBUGINFOD_URLS is not set
