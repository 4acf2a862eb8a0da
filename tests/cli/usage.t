# Bad usage: one sentence that names the thing, says why and what to do; exit status 2; nothing is touched.

NAME no command at all
RUN ktrace
STATUS 2
EXPECT ktrace: name a command: attach, run, list, ctl, plugin, repair, bench or doctor; ktrace --help shows how

NAME an unknown command suggests the nearest
RUN ktrace atach
STATUS 2
EXPECT ktrace: there is no command `atach'; did you mean attach?

NAME options before the command
RUN ktrace -p 1 --ret main
STATUS 2
EXPECT ktrace: name a command before the options: attach, run, list, ctl, plugin, repair, bench or doctor; for example ktrace attach -p PID --ret FUNCTION

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

NAME an option without its value, behind another letter
RUN ktrace attach -p 1 -qk
STATUS 2
EXPECT ktrace: -k needs a value: -k SPEC

NAME options in one word, the last of which takes the next word
RUN ktrace attach -qk main -p bash
STATUS 2
EXPECT ktrace: -p needs the number of a process, not `bash'; pidof NAME prints it

NAME options in one word, the last of which has its value in it
RUN ktrace attach -qkmain -p bash
STATUS 2
EXPECT ktrace: -p needs the number of a process, not `bash'; pidof NAME prints it

NAME options in one word, before an empty value
RUN ktrace run -qk main --by= -- true
STATUS 2
EXPECT ktrace: --by needs a value: --by EXPR[,EXPR...]

NAME options in one word, one of which there is not
RUN ktrace attach -p 1 -qlk main
STATUS 2
EXPECT ktrace: there is no option -l; ktrace --help shows the options

NAME options in one word, which another command takes
RUN ktrace list -qk main
STATUS 2
EXPECT ktrace: list does not take -q; it is an option of attach, run

NAME a long option with one dash
RUN ktrace attach -p 1 -j main -stack
STATUS 2
EXPECT ktrace: there is no option -stack; did you mean --stack?

NAME a `=' behind an option of one letter
RUN ktrace attach -p 1 -k main -vq=
STATUS 2
EXPECT ktrace: there is no option -=; ktrace --help shows the options

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
EXPECT ktrace: attach needs a process: -p PID

NAME a process that is no number
RUN ktrace attach -p bash -k main
STATUS 2
EXPECT ktrace: -p needs the number of a process, not `bash'; pidof NAME prints it

NAME a process number that is too large
RUN ktrace attach -p 99999999999 -k main
STATUS 2
EXPECT ktrace: -p 99999999999: no process has so large a number

NAME a comma behind the last process
RUN ktrace attach -p 12, -k main
STATUS 2
EXPECT ktrace: -p has a comma with no process behind or before it

NAME nothing to probe
RUN ktrace attach -p 1
STATUS 2
EXPECT ktrace: there is nothing to probe; say what with -k, -j, -r or -w, for example --ret main

NAME a stray word
RUN ktrace attach -p 1 -k main other
STATUS 2
EXPECT ktrace: attach does not take `other'; to start a program: ktrace run PROBE... -- PROGRAM [ARG...]

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
STATUS 2
EXPECT ktrace: run does not take `retval' before --; the value of --hist goes behind a `=': --hist=retval

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
RUN ktrace run -k main ls -l
STATUS 2
EXPECT ktrace: run does not take `ls' before --; put the program behind it: ktrace run PROBE... -- PROGRAM [ARG...]

NAME run with a program, but without --
RUN ktrace run -k main ls
STATUS 2
EXPECT ktrace: run does not take `ls' before --; put the program behind it: ktrace run PROBE... -- PROGRAM [ARG...]

NAME run without --, of a program whose options look like ktrace's
RUN ktrace run -qk main ls --by=
STATUS 2
EXPECT ktrace: run does not take `ls' before --; put the program behind it: ktrace run PROBE... -- PROGRAM [ARG...]

NAME run without a program
RUN ktrace run -k main --
STATUS 2
EXPECT ktrace: run needs a program: ktrace run PROBE... -- PROGRAM [ARG...]

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
EXPECT ktrace: --format is text or json, not `xml'

NAME control characters of the command line do not reach the terminal
RUN ktrace $'a\033[2Jb'
STATUS 2
EXPECT ktrace: there is no command `a\x1b[2Jb'; there are attach, run, list, ctl, plugin, repair, bench and doctor

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
