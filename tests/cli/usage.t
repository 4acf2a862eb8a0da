# Bad usage: one sentence that names the thing, says why and what to do; exit status 2; nothing is touched.

NAME no command at all
RUN ktrace
STATUS 2
EXPECT ktrace: name a command: attach, run, stack, profile, diff, list, ctl, plugin, repair, bench or doctor; ktrace --help shows how

NAME an unknown command suggests the nearest
RUN ktrace atach
STATUS 2
EXPECT ktrace: there is no command `atach'; did you mean attach?

NAME options before the command
RUN ktrace -p 1 --ret main
STATUS 2
EXPECT ktrace: name a command before the options: attach, run, stack, profile, diff, list, ctl, plugin, repair, bench or doctor; for example ktrace attach -p PID --ret FUNCTION

NAME an unknown option suggests the nearest
RUN ktrace attach -p 1 --rett do_work
STATUS 2
EXPECT ktrace: there is no option --rett; did you mean --ret?

NAME an option that only other commands take
RUN ktrace list -p 1 -j main
STATUS 2
EXPECT ktrace: list does not take -j; it is an option of attach, run, ctl

NAME what is said of a whole trace is not said to ctl
RUN ktrace ctl add -p 1 -j main --duration=5s
STATUS 2
EXPECT ktrace: ctl does not take --duration; that is for the whole trace when it is started; added probes end with it

NAME an option without its value
RUN ktrace attach -p 1 -k
STATUS 2
EXPECT ktrace: -k needs a value: -k SPEC

NAME an option without its value, before another
RUN ktrace attach -p 1 -r --stats
STATUS 2
EXPECT ktrace: -r needs a value: -r SPEC; `--stats' is an option

NAME an option without its value, before another, with run
RUN ktrace run -j main -qo -v ls
STATUS 2
EXPECT ktrace: -o needs a value: -o FILE; `-v' is an option

NAME an option without its value, before another and a number
RUN ktrace attach -p -q --max-events -5 -k main
STATUS 2
EXPECT ktrace: -p needs a value: -p PID|NAME[,...]; `-q' is an option

NAME a number below zero
RUN ktrace attach -p 1 --max-events -5 -k main
STATUS 2
EXPECT ktrace: --max-events needs a whole number, not `-5'

NAME an expression that begins with a dash
RUN ktrace run -r libc:setlocale --print -1 --first 1 -qo - ls /dev/null | sed -n 's/.* setlocale/setlocale/p'
EXPECT_RE setlocale\(-1=-1\) returned .*

NAME options of other tools: a count
RUN ktrace run -c -j main ls
STATUS 2
EXPECT ktrace: there is no option -c; --count counts hits, and -r FUNCTION --stats measures calls

NAME options of other tools: an expression
RUN ktrace run -e trace=open ls
STATUS 2
EXPECT ktrace: there is no option -e; a probe goes behind -j, -r or -k, for example -j libc:open

NAME options of other tools: the length of texts, in one word
RUN ktrace attach -p 1 -s200 -j main
STATUS 2
EXPECT ktrace: there is no option -s; --print 'str(arg0, 200)' shows 200 bytes of a text

NAME options of other tools: the time, behind another letter
RUN ktrace attach -p 1 -qt -j main
STATUS 2
EXPECT ktrace: there is no option -t; each line begins with the time, and --if 'tid == N' picks a thread

NAME options of other tools: an end
RUN ktrace attach -p 1 -n 5 -d 10 -j main
STATUS 2
EXPECT ktrace: there is no option -n; --max-events N ends the trace after N events

NAME options of other tools mean nothing to other commands
RUN ktrace list -n /bin/ls
STATUS 2
EXPECT ktrace: there is no option -n; ktrace list --help shows the options

NAME an option without its value, behind another letter
RUN ktrace attach -p 1 -qk
STATUS 2
EXPECT ktrace: -k needs a value: -k SPEC

NAME options in one word, the last of which takes the next word
RUN ktrace attach -qk main -p 0
STATUS 2
EXPECT ktrace: -p 0: processes are numbered from 1

NAME options in one word, the last of which has its value in it
RUN ktrace attach -qkmain -p 0
STATUS 2
EXPECT ktrace: -p 0: processes are numbered from 1

NAME options in one word, before an empty value
RUN ktrace run -qk main --by= -- true
STATUS 2
EXPECT ktrace: --by needs a value: --by EXPR[,EXPR...]

NAME options in one word, one of which there is not
RUN ktrace attach -p 1 -qlk main
STATUS 2
EXPECT ktrace: there is no option -l; ktrace attach --help shows the options

NAME options in one word, which another command takes
RUN ktrace list -qk main
STATUS 2
EXPECT ktrace: list does not take -q; it is an option of attach, run, stack, profile

NAME a long option with one dash
RUN ktrace attach -p 1 -j main -stack
STATUS 2
EXPECT ktrace: there is no option -stack; did you mean --stack?

NAME a `=' behind an option of one letter
RUN ktrace attach -p 1 -k main -vq=
STATUS 2
EXPECT ktrace: there is no option -=; ktrace attach --help shows the options

NAME an empty value of an option that another command takes, at the end
RUN ktrace list --by=
STATUS 2
EXPECT ktrace: list does not take --by; it is an option of attach, run, ctl

NAME an empty value of an option that there is not
RUN ktrace attach -p 1 -k main --buy= --count
STATUS 2
EXPECT ktrace: there is no option --buy; did you mean --by?

NAME an empty value where none belongs
RUN ktrace attach -p 1 -k main --quiet=
STATUS 2
EXPECT ktrace: --quiet takes no value

NAME an empty value that could be left out
RUN ktrace attach -p 1 -j main --stack=
STATUS 2
EXPECT ktrace: --stack= needs a value: --stack=N; or --stack alone

NAME an empty value of an option that another command takes
RUN ktrace list --print= main
STATUS 2
EXPECT ktrace: list does not take --print; it is an option of attach, run, ctl

NAME a process number of many digits
RUN ktrace attach -p 99999999999999999999999 -k main
STATUS 2
EXPECT ktrace: -p 99999999999999999999999: no process has so large a number

NAME an option with an empty value
RUN ktrace attach -p 1 -k main --by= --count
STATUS 2
EXPECT ktrace: --by needs a value: --by EXPR[,EXPR...]

NAME a value where none belongs
RUN ktrace attach -p 1 -k main --regs=5
STATUS 2
EXPECT ktrace: --regs takes no value

NAME attach without a process
RUN ktrace attach -k main
STATUS 2
EXPECT ktrace: attach needs a process: -p PID, or -p NAME

NAME a name that no process has
RUN ktrace attach -p transcripd.qx -k main
STATUS 1
EXPECT ktrace: no process is called transcripd.qx; ps -e shows the names

NAME a name that no process has, with one that is near
RUN cp "$(command -v sleep)" transcribed; ./transcribed 300 & until grep -qx transcribed /proc/$!/comm; do :; done; ktrace attach -p transcriped -k main; kill %1
EXPECT ktrace: no process is called transcriped; did you mean transcribed?

NAME a name that several processes have, of which a command takes one
RUN cp "$(command -v sleep)" two; for i in 1 2; do ./two 300 & until grep -qx two /proc/$!/comm; do :; done; done; for c in list 'ctl list' repair; do ktrace $c -p two; done 2>&1 | sed 's/[0-9][0-9]*/N/g'; kill %1 %2
EXPECT ktrace: list looks into one process, and N are called two: N, N; name it by its number
EXPECT ktrace: ctl looks into one process, and N are called two: N, N; name it by its number
EXPECT ktrace: repair looks into one process, and N are called two: N, N; name it by its number

NAME no process at all, as of pidof
RUN ktrace attach -p "$(pidof transcripd.qx)" -k main
STATUS 2
EXPECT ktrace: -p needs a process, by its number or its name; where it is $(pidof NAME), none has that name

NAME a process number that is too large
RUN ktrace attach -p 99999999999 -k main
STATUS 2
EXPECT ktrace: -p 99999999999: no process has so large a number

NAME a comma behind the last process
RUN ktrace attach -p 12, -k main
STATUS 2
EXPECT ktrace: -p has a comma with no process behind or before it

NAME nothing to probe
RUN ktrace ctl -p 1 add
STATUS 2
EXPECT ktrace: no probe is given; say what with -k, -j, -r or -w, for example --ret main

NAME a stray word
RUN ktrace attach -p 1 -k main other
STATUS 2
EXPECT ktrace: attach does not take `other'; to start a program: ktrace run PROBE... PROGRAM [ARG...]

NAME a value that has to stand behind =
RUN ktrace attach -p 1 -j main --stack 5
STATUS 2
EXPECT ktrace: attach does not take `5'; the value of --stack goes behind a `=': --stack=5

NAME a negative value that has to stand behind =
RUN ktrace attach -p 1 -j main --skip -1
STATUS 2
EXPECT ktrace: there is no option -1; the value of --skip goes behind a `=': --skip=-1

NAME a value that has to stand behind =, with run
RUN ktrace run -r main --hist retval -- ls
STATUS 127
EXPECT ktrace: there is no program retval; the value of --hist goes behind a `=': --hist=retval

NAME a value that has to stand behind =, with ctl
RUN ktrace ctl -p 1 add -j main --stats arg0
STATUS 2
EXPECT ktrace: ctl add does not take `arg0'; the value of --stats goes behind a `=': --stats=arg0

NAME an order behind an option that takes a value only behind =
RUN ktrace ctl -p 1 -j main --stack add --regs=5
STATUS 2
EXPECT ktrace: --regs takes no value

NAME a process without -p
RUN ktrace attach 1234 -j main
STATUS 2
EXPECT ktrace: attach does not take `1234'; a process goes behind -p: -p 1234

NAME ctl of a process without -p
RUN ktrace ctl 1234 list
STATUS 2
EXPECT ktrace: ctl cannot `1234'; a process goes behind -p: -p 1234

NAME repair of a process without -p
RUN ktrace repair 1234
STATUS 2
EXPECT ktrace: repair does not take `1234'; a process goes behind -p: -p 1234

NAME list of a process without -p
RUN ktrace list 1234
STATUS 1
EXPECT ktrace: cannot open 1234: No such file or directory; a process goes behind -p: -p 1234

NAME a function without its option
RUN ktrace attach -p 1 main
STATUS 2
EXPECT ktrace: attach does not take `main'; a probe goes behind -k, -j, -r or -w, for example --ret main

NAME run without --
RUN ktrace run -q -j libc:abort ls --by=, --ret
STATUS 2
EXPECT ls: unrecognized option '--by=,'
EXPECT Try 'ls --help' for more information.

NAME run without --, with a -- of the program's own
RUN ktrace run -q -j libc:abort --stack printf -- '%s\n' -- a
EXPECT --
EXPECT a

NAME run with an option that the program has, too
RUN ktrace run -qo /dev/null -j libc:abort echo -r --version --
EXPECT -r --version --

NAME run with a probe behind the program
RUN ktrace run ls -j main
STATUS 2
EXPECT ktrace: there is no probe before `ls'; probes stand before the program: ktrace run --ret main ls

NAME run without a probe, with --
RUN ktrace run -q -- ls
STATUS 2
EXPECT ktrace: there is no probe before `ls'; probes stand before the program: ktrace run --ret main ls

NAME a value that has to stand behind =, with run and nothing else
RUN ktrace run --stack 5 -j main ls
STATUS 2
EXPECT ktrace: there is no probe before `5'; the value of --stack goes behind a `=': --stack=5

NAME run without a program
RUN ktrace run -k main --
STATUS 2
EXPECT ktrace: run needs a program: ktrace run PROBE... PROGRAM [ARG...]

NAME tables exclude each other
RUN ktrace attach -p 1 -r main --count --hist
STATUS 2
EXPECT ktrace: --count, --stats and --hist exclude each other, and each is given once; --stats and --hist show the count, too

NAME a column that no table has
RUN ktrace attach -p 1 -r main --stats --sort size
STATUS 2
EXPECT ktrace: --sort needs a column of the table, not `size'; there are total, self, count, avg, min, p50, p90, p99, max and function

NAME options of tables without one
RUN ktrace attach -p 1 -r main --top 3
STATUS 2
EXPECT ktrace: --top does nothing without a table; --count, --stats and --hist make one

NAME an interval without a unit
RUN ktrace attach -p 1 -r main --stats --interval 5
STATUS 2
EXPECT ktrace: --interval needs a time with its unit, not `5'; for example 10s, 250ms, 2m

NAME statistics of what
RUN ktrace attach -p 1 -k main --stats
STATUS 2
EXPECT ktrace: --stats and --hist need an expression where there are other probes than -r; for example --hist=arg0; or use -r alone to measure the duration

NAME statistics of what, beside durations
RUN ktrace attach -p 1 -r main -j main --hist
STATUS 2
EXPECT ktrace: --stats and --hist need an expression where there are other probes than -r; for example --hist=arg0; or use -r alone to measure the duration

NAME a missing expression is pointed at
RUN ktrace attach -p 1 -k main --print 'arg0,,arg1'
STATUS 2
EXPECT ktrace: arg0,,arg1: an expression is missing here
EXPECT              ^

NAME a duration without a unit
RUN ktrace attach -p 1 -k main --duration 10
STATUS 2
EXPECT ktrace: --duration needs a time with its unit, not `10'; for example 10s, 250ms, 2m

NAME a chance that is none
RUN ktrace attach -p 1 -k main --chance 2
STATUS 2
EXPECT ktrace: --chance needs a probability above 0 and up to 1, not `2'; for example --chance 0.01

NAME every nothing
RUN ktrace attach -p 1 -k main --every 0
STATUS 2
EXPECT ktrace: --every must be at least 1

NAME an expression for after an instruction that none is probed for
RUN ktrace attach -p 1 -r main -j main --post=var.nosuch
STATUS 2
EXPECT ktrace: --post has no event to show an expression with where there is no -k; --print shows values with the events of the others

NAME a seed without a chance
RUN ktrace attach -p 1 -k main --seed 7
STATUS 2
EXPECT ktrace: --seed does nothing without --chance

NAME an unknown format
RUN ktrace attach -p 1 -k main --format xml
STATUS 2
EXPECT ktrace: --format is text, json, csv, folded or chrome, not `xml'

NAME control characters of the command line do not reach the terminal
RUN ktrace $'a\033[2Jb'
STATUS 2
EXPECT ktrace: there is no command `a\x1b[2Jb'; there are attach, run, stack, profile, diff, list, ctl, plugin, repair, bench and doctor

NAME list of nothing
RUN ktrace list
STATUS 2
EXPECT ktrace: list needs a process or a file: ktrace list (-p PID | FILE) [PATTERN]

NAME list takes one pattern
RUN ktrace list /bin/ls a b
STATUS 2
EXPECT ktrace: list takes one pattern, and `b' is one too many; quote a pattern, so that the shell does not expand it

NAME ctl without an order
RUN ktrace ctl -p 1
STATUS 2
EXPECT ktrace: ctl needs to know what to do; there are list, stats, add, remove, enable, disable, on and off

NAME ctl with an order that there is not
RUN ktrace ctl -p 1 statz
STATUS 2
EXPECT ktrace: ctl cannot `statz'; did you mean stats?

NAME ctl without a process
RUN ktrace ctl list
STATUS 2
EXPECT ktrace: ctl needs one process: -p PID

NAME ctl remove without a probe
RUN ktrace ctl -p 1 remove
STATUS 2
EXPECT ktrace: ctl remove needs the number of a probe, or its SPEC as it was given; ktrace ctl -p PID stats shows the numbers

NAME ctl add without a probe
RUN ktrace ctl -p 1 add main
STATUS 2
EXPECT ktrace: ctl add does not take `main'; say what to probe with -k, -j, -r or -w

NAME only ctl add has the options of probes
RUN ktrace ctl -p 1 remove 2 --print arg0
STATUS 2
EXPECT ktrace: ctl remove does not take --print

NAME ctl of a process that nobody traces
RUN ktrace ctl -p $$ list 2>&1 | sed 's/[0-9]\+/N/g'
EXPECT ktrace: no ktrace traces process N (bash); ktrace attach -p N starts one

NAME options of one probe, which is not there
RUN ktrace run -j 'no_such --print arg0, arg1 --if tid > 1' ls 2>&1 | head -1
EXPECT ktrace: no_such: no function no_such in ls and its 5 libraries

NAME options of one probe: the error points into the quoted text
RUN ktrace attach -p 1 -r 'main --if retval >' --stats
STATUS 2
EXPECT_RE ktrace: main --if retval >: .*
EXPECT_RE  {26}\^.*

NAME options of one probe: an error in the SPEC
RUN ktrace attach -p 1 -k 'main+x --print arg0'
STATUS 2
EXPECT ktrace: main+x: x is not a number
EXPECT              ^ an offset is decimal or hex with 0x

NAME options of one probe: a value that is refused
RUN ktrace attach -p 1 -j 'main --every 0 --count'
STATUS 2
EXPECT ktrace: main --every 0 --count: --every must be at least 1
EXPECT                      ^

NAME options of one probe: an option of the command
RUN ktrace attach -p 1 -j 'main --print arg0 --duration 5s'
STATUS 2
EXPECT ktrace: main --print arg0 --duration 5s: --duration is not for one probe
EXPECT                           ^~~~~~~~~~ it goes outside of the quotes

NAME options of one probe: an option that there is not
RUN ktrace attach -p 1 -j 'main --prnt arg0'
STATUS 2
EXPECT ktrace: main --prnt arg0: there is no option --prnt
EXPECT              ^~~~~~ did you mean --print?

NAME options of one probe: a value is missing
RUN ktrace attach -p 1 -j 'main --print --count'
STATUS 2
EXPECT ktrace: main --print --count: --print needs a value: --print EXPR[,EXPR...]
EXPECT              ^~~~~~~

NAME options of one probe: a value that has to stand behind =
RUN ktrace attach -p 1 -j 'main --stack 5 --count'
STATUS 2
EXPECT ktrace: main --stack 5 --count: the value of --stack goes behind a `='
EXPECT                      ^ --stack=5

NAME options of one probe: a value where none belongs
RUN ktrace attach -p 1 -j 'main --regs=5'
STATUS 2
EXPECT ktrace: main --regs=5: --regs takes no value
EXPECT                     ^

NAME options of one probe: tables exclude each other
RUN ktrace attach -p 1 -r 'main --count --hist'
STATUS 2
EXPECT_RE ktrace: main --count --hist: --count, --stats and --hist exclude each other, and each is given once
EXPECT_RE  +\^~* --stats and --hist show the count, too

NAME options of one probe: statistics of what
RUN ktrace attach -p 1 -j 'main --stats' -r main --count
STATUS 2
EXPECT_RE ktrace: main --stats: --stats and --hist need an expression where there are other probes than -r
EXPECT_RE  +\^~+ for example --hist=arg0; or use -r alone to measure the duration

NAME options of one probe: a -- in a string is none
RUN ktrace attach -p 1 -j 'main --if str(arg0) == " --count" --bounds'
STATUS 2
EXPECT_RE ktrace: main --if str\(arg0\) == " --count" --bounds: .*
EXPECT_RE  +\^.*

NAME errno alone
RUN ktrace attach -p 1 -j main --set-errno ENOSPC
STATUS 2
EXPECT ktrace: --set-errno goes with --skip or --set-ret; for example --skip=-1 --set-errno ENOSPC

NAME errno twice
RUN ktrace attach -p 1 -j main --skip --set-errno 1 --set-errno 2
STATUS 2
EXPECT ktrace: --set-errno is given twice

NAME an expectation that is none
RUN ktrace attach -p 1 -r main --expect 'p99 <'
STATUS 2
EXPECT ktrace: p99 <: the expression ends where a value should be
EXPECT              ^

NAME one inside of quotes
RUN ktrace run -r 'main --expect each(retval' true
STATUS 2
EXPECT ktrace: main --expect each(retval: this ( is never closed
EXPECT                           ^

NAME one that fits no probe
RUN ktrace run -j main --expect 'p99 < 10ms' true
STATUS 2
EXPECT ktrace: p99 < 10ms: no probe has these figures
EXPECT         ^~~~~~~~~~ -r measures durations, and --stats=EXPR the values of an EXPR

NAME one of a probe that the command does not have
RUN ktrace run -j main --expect 'nain: count == 1' true
STATUS 2
EXPECT ktrace: nain: count == 1: no probe of this command is `nain'
EXPECT         ^~~~ it is a function, or a SPEC as it was given

NAME the order of what the command does not have
RUN ktrace run -j main --expect 'main before init' true
STATUS 2
EXPECT ktrace: main before init: no probe of this command is `init'
EXPECT                     ^~~~ it is a function, or a SPEC as it was given

NAME a report of nothing
RUN ktrace run -j main --report r.xml true
STATUS 2
EXPECT ktrace: --report does nothing without an expectation; give one with --expect

NAME a report of another kind
RUN ktrace run -j main --expect 'count == 1' --report r.txt true
STATUS 2
EXPECT ktrace: --report needs a FILE.xml (JUnit) or a FILE.tap (TAP), not `r.txt'

NAME expectations are not for ctl
RUN ktrace ctl -p 1 add -j 'main --expect count == 1'
STATUS 2
EXPECT ktrace: ctl does not take --expect; that is for the whole trace when it is started

NAME formats that fit nothing in the command
RUN for format in csv folded chrome; do ktrace run -j main --format $format $([ $format = chrome ] && echo --count) true; echo $?; done
EXPECT ktrace: --format csv has tables alone; --count, --stats and --hist make one
EXPECT 2
EXPECT ktrace: --format folded has stacks alone; --by stack counts them
EXPECT 2
EXPECT ktrace: --format chrome has events alone, and these probes make tables; leave out --count, --stats, --hist and --by
EXPECT 2

NAME two runs need two files
RUN ktrace diff old.json
STATUS 2
EXPECT ktrace: diff takes two files: ktrace diff OLD.json NEW.json; ktrace writes them with --format json -o FILE

NAME a file of a run that is none
RUN printf '{"type":"row","symbol":"f","kind":"j","count":1}\n' > old.json; echo hello > new.json; ktrace diff old.json new.json
STATUS 1
EXPECT ktrace: new.json: line 1 is no JSON object; ktrace writes such a file with --format json

NAME two runs are compared by figures
RUN ktrace diff a b --expect 'each(retval == 0)'
STATUS 2
EXPECT ktrace: each(retval == 0): two runs are compared by their figures alone
EXPECT         ^~~~~~~~~~~~~~~~~ for example p99 < 1.2 * old.p99

NAME stack and profile need a process
RUN ktrace stack; ktrace profile
STATUS 2
EXPECT ktrace: stack needs a process: -p PID, or -p NAME
EXPECT ktrace: profile needs a process: -p PID, or -p NAME

NAME a process alone, behind stack
RUN ktrace stack 1234
STATUS 2
EXPECT ktrace: stack does not take `1234'; a process goes behind -p: -p 1234

NAME what is waited for, in tables that have both
RUN ktrace profile -p 1 --waiting
STATUS 2
EXPECT ktrace: --waiting is of a flame graph (-o FILE.svg) or of --format folded; the tables have both

NAME a flame graph in another format
RUN ktrace profile -p 1 -o graph.svg --format folded
STATUS 2
EXPECT ktrace: -o FILE.svg is a flame graph, and has no --format

NAME a format of profile's alone
RUN ktrace stack -p 1 --format folded
STATUS 2
EXPECT ktrace: stack has the formats text and json

NAME a format that no profile has
RUN ktrace profile -p 1 --format chrome
STATUS 2
EXPECT ktrace: profile has the formats text, json and folded
