# --help and --version go to standard output, with exit status 0.

NAME the version
RUN ktrace --version 2>/dev/null
EXPECT_RE ktrace \d+\.\d+\.\d+

NAME the version, behind a command
RUN ktrace attach --version 2>/dev/null
EXPECT_RE ktrace \d+\.\d+\.\d+

NAME the help has examples
RUN ktrace --help 2>/dev/null
EXPECT_SOME ^  attach -p PID
EXPECT_SOME ^Examples:
EXPECT_SOME ^  ktrace run .* ls -l

NAME the example of a program that everybody has
RUN eval "$(ktrace run --help | sed -n 's/^Examples: //; s/  *the arguments of each call$//p')" 2>/dev/null | grep -c 'ls/[0-9]* write(fd=1, buf="total [0-9]*.n.*, nbytes=[0-9]*)$'
EXPECT 1

NAME the help of a command has only its options
RUN ktrace list --help | grep -c -e --ret
STATUS 1
EXPECT 0

NAME help COMMAND is COMMAND --help
RUN diff <(ktrace help attach) <(ktrace attach --help)

NAME help behind wrong options still complains of them
RUN ktrace attach --what --help
STATUS 2
EXPECT ktrace: there is no option --what; ktrace attach --help shows the options

NAME the help fits a terminal of 80 columns and 24 lines, that of a command 60 lines
RUN for c in '' attach run stack profile diff list ctl repair plugin bench doctor; do ktrace $c --help | awk -v c="$c" 'length > 80 { print c ": " $0 } END { if (NR > (c ? 60 : 24)) print c ": " NR " lines" }'; done

NAME each command is in the help
RUN for c in attach run stack profile diff list ctl repair plugin bench doctor; do ktrace --help | grep -q "^  $c " || echo "$c is not"; done

NAME the heading of a section that has no option is not there
RUN ktrace list --help | grep -c "^Which hits"
STATUS 1
EXPECT 0

NAME standard output that is full
RUN ktrace --help >/dev/full
STATUS 1
EXPECT ktrace: cannot write to standard output: No space left on device; make room, or write elsewhere
