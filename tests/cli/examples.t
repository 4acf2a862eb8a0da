# The commands of ktrace-examples(7) are read without an error; of processes that are not there, the last thing said.

NAME the commands of the page, of processes that are not there
RUN page="$(dirname "$(command -v ktrace)")/../../../man/ktrace-examples.7"; grep '^ktrace attach' "$page" | sed 's/ -p [a-z0-9-]*/ -p no.such.process/' > commands; wc -l < commands; while read -r line; do bash -c "$line" 2>&1 </dev/null; done < commands | sort | uniq -c | sed 's/^ *//'
EXPECT 13
EXPECT 13 ktrace: no process is called no.such.process; ps -e shows the names

NAME the command of the page that runs a program
RUN page="$(dirname "$(command -v ktrace)")/../../../man/ktrace-examples.7"; bash -c "$(grep '^ktrace run' "$page")" 2>&1 | grep -o 'xmalloc: cannot allocate 3 bytes'
EXPECT xmalloc: cannot allocate 3 bytes
