# The example of ktrace-expect(7), as a job of CI would run it: of a program that behaves, and of one that does not.

NAME the job of the page
RUN page="$(dirname "$(command -v ktrace)")/../../../man/ktrace-expect.7"; sed -n '/^ktrace run -r parse --stats/,/^\.Ed/p' "$page" | sed '/^\.Ed/d; s/\\e$/\\/' > job; wc -l < job; for body in 'parse(1) + parse(2)' 'parse(1) + parse(-1) + parse(3)'; do printf '#include <unistd.h>\n__attribute__((noipa)) int parse(int n) { if (n < 0) usleep(50000); return n; }\nint main(void) { return %s == 99; }\n' "$body" > t.c; gcc -g t.c -o test; bash -e job > out 2>&1; echo $?; grep -o '.*expected [^,]*, saw it .*\|.*expected count.*\|.*p99.*, saw\|.*hold$' out; rm -f out; done; ls
EXPECT 6
EXPECT 0
EXPECT ktrace: 2 of 2 expectations hold
EXPECT ktrace: 2 of 2 expectations hold
EXPECT 3
EXPECT ktrace: parse [test]: expected each(retval >= 0), saw it fail in 1 of 3 calls
EXPECT ktrace: 1 of 2 expectations hold
EXPECT base.json
EXPECT calls.xml
EXPECT diff.xml
EXPECT job
EXPECT new.json
EXPECT t.c
EXPECT test

NAME the comparison of that run with the one before
RUN row='{"type":"row","kind":"r","symbol":"parse","module":"test","stats":{"count":%s,"total":%s,"self":1,"p99":%s,"error":{}}}\n'; printf "$row" 2 2000 1000 > base.json; printf "$row" 3 60000000 50000000 > new.json; page="$(dirname "$(command -v ktrace)")/../../../man/ktrace-expect.7"; sed -n '/^ktrace diff base.json/,/^\.Ed/p' "$page" | sed '/^\.Ed/d; s/\\e$/\\/' > job; bash job 
STATUS 3
EXPECT    total      old   change    count      old      p99      old  function
EXPECT  ~60.0ms  ~2.00us +2999900%        3        2  ~50.0ms  ~1.00us  parse
EXPECT ktrace: parse [test]: expected count <= old.count, saw count 3, old.count 2
EXPECT ktrace: parse [test]: expected p99 < 1.5 * old.p99 + 1ms, saw p99 ~50.00 ms, old.p99 ~1.000 us in 3 calls
EXPECT ktrace: 0 of 2 expectations hold
