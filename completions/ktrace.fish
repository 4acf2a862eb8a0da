# fish completion for ktrace(1)

function __ktrace_needs_command
    test (count (commandline -opc)) -eq 1
end

# True before the -- that ends ktrace's own options; $argv: the commands that the option belongs to.
function __ktrace_in
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv; and not contains -- -- $words[3..]
end

# The functions of the process or the program on the command line.
function __ktrace_functions
    set -l words (commandline -opc)
    set -l target
    for option in -p --pid
        if set -l at (contains -i -- $option $words)
            set -l pid (string split , -- $words[(math $at + 1)])[1]
            test -d /proc/$pid; or set pid (pidof -s $pid); or return
            set target -p $pid
            break
        end
    end
    if not set -q target[1]; and test "$words[2]" = run # the program behind the cursor
        for word in (commandline -op)[(math (count $words) + 1)..]
            set -l path (command -s -- $word); and string match -qv -- '-*' $word; and set target $path; and break
        end
    end
    set -q target[1]; or return
    ktrace list $target (commandline -ct)'*' 2>/dev/null | string replace -rf \
        '^[0-9a-f]+ (?:.*[ *&])?([A-Za-z_][\w.:~]*)(?:\(.*| \[.*)$' '$1'
end

complete -c ktrace -f
complete -c ktrace -n __ktrace_needs_command -a attach -d 'Trace running processes'
complete -c ktrace -n __ktrace_needs_command -a run -d 'Trace a program from its first instruction'
complete -c ktrace -n __ktrace_needs_command -a stack -d 'Show where every thread is now'
complete -c ktrace -n __ktrace_needs_command -a profile -d 'Show where the time goes'
complete -c ktrace -n __ktrace_needs_command -a list -d 'Show what can be probed'
complete -c ktrace -n __ktrace_needs_command -a bench -d 'Measure what a hit costs on this machine'
complete -c ktrace -n __ktrace_needs_command -a diff -d 'Compare two runs, function by function'
complete -c ktrace -n '__ktrace_in diff' -F
complete -c ktrace -n __ktrace_needs_command -a doctor -d 'Report what may be traced here'
complete -c ktrace -n __ktrace_needs_command -a ctl -d 'Talk to the ktrace that traces a process'
complete -c ktrace -n __ktrace_needs_command -a repair -d 'Take out what a killed ktrace left'
complete -c ktrace -n __ktrace_needs_command -a plugin -d 'Build a plugin'
complete -c ktrace -s h -l help -d 'Show the help'
complete -c ktrace -s V -l version -d 'Show the version'

complete -c ktrace -n '__ktrace_in attach stack profile list ctl repair' -s p -l pid -x -a '(__fish_complete_pids) (__fish_complete_proc)' -d 'The process'
complete -c ktrace -n '__ktrace_in attach run' -s f -l follow -d 'Trace the children, too'
complete -c ktrace -n '__ktrace_in attach run ctl' -l allow-missing -d 'Go on without the probes that cannot be placed'
complete -c ktrace -n '__ktrace_in attach run profile' -l duration -x -a '1s 10s 1m' -d 'End the trace after this time'
complete -c ktrace -n '__ktrace_in profile' -s F -l frequency -x -d 'Look at each thread N times a second'
complete -c ktrace -n '__ktrace_in attach run' -l max-events -x -d 'End the trace after N events'
complete -c ktrace -n '__ktrace_in attach run' -l engine -x -a 'auto trap jump' -d 'By jumps, without a stop, where that can be done'
complete -c ktrace -n '__ktrace_in attach run' -l lossless -d 'Threads wait for room for events, however long'
complete -c ktrace -n '__ktrace_in attach run' -l max-overhead -x -a '1% 5% 20%' -d 'Disarm what costs a thread more of its time'
complete -c ktrace -n '__ktrace_in attach run ctl' -s k -l probe -x -a '(__ktrace_functions)' -d 'Probe an instruction'
complete -c ktrace -n '__ktrace_in attach run ctl' -s j -l entry -x -a '(__ktrace_functions)' -d 'Probe a function\'s entry'
complete -c ktrace -n '__ktrace_in attach run ctl' -s r -l ret -x -a '(__ktrace_functions)' -d 'Probe a function\'s return'
complete -c ktrace -n '__ktrace_in attach run ctl' -s w -l watch -x -d 'Watch data: NAME|ADDRESS[/LENGTH][:w|rw|x]'
complete -c ktrace -n '__ktrace_in attach run' -l plugin -r -F -d 'Run a plugin in the kprobes style'
complete -c ktrace -n '__ktrace_in attach run ctl' -l if -x -d 'Only where EXPR holds'
complete -c ktrace -n '__ktrace_in attach run ctl' -l inside -x -a '(__ktrace_functions)' -d 'Only under calls of this function'
complete -c ktrace -n '__ktrace_in attach run ctl' -l print -x -d 'Print these values with each event, in place of the arguments'
complete -c ktrace -n '__ktrace_in attach run ctl' -l no-args -d 'Events without the arguments'
complete -c ktrace -n '__ktrace_in attach run ctl' -l full -d 'Values are not shortened'
complete -c ktrace -n '__ktrace_in attach run ctl' -l post -d 'An event after the instruction, too'
complete -c ktrace -n '__ktrace_in attach run ctl' -l regs -d 'Print the registers'
complete -c ktrace -n '__ktrace_in attach run ctl' -l stack -d 'Print the stack: all frames, or =N of them'
complete -c ktrace -n '__ktrace_in attach run ctl' -l set-arg -x -d 'Change an argument: N=EXPR'
complete -c ktrace -n '__ktrace_in attach run ctl' -l set-reg -x -d 'Change a register: REG=EXPR'
complete -c ktrace -n '__ktrace_in attach run ctl' -l set-ret -x -d 'Change what the function returns'
complete -c ktrace -n '__ktrace_in attach run ctl' -l set-errno -x -d 'With --skip, --set-ret: what errno is then'
complete -c ktrace -n '__ktrace_in attach run ctl' -l skip -d 'Return 0 at once, or =EXPR'
complete -c ktrace -n '__ktrace_in attach run ctl' -l maxactive -x -d 'Return probes: calls in flight per location'
complete -c ktrace -n '__ktrace_in attach run ctl' -l count -d 'Count, instead of a line an event'
complete -c ktrace -n '__ktrace_in attach run ctl' -l stats -d 'Count, total, self, average, minimum, maximum, percentiles'
complete -c ktrace -n '__ktrace_in attach run ctl' -l hist -d 'A histogram by powers of two'
complete -c ktrace -n '__ktrace_in attach run ctl' -l by -x -d 'A row per value'
complete -c ktrace -n '__ktrace_in attach run' -l sort -x -a 'total self count avg min p50 p90 p99 max function' -d 'Largest first by this column'
complete -c ktrace -n '__ktrace_in attach run profile' -l top -x -d 'The first N rows, and the rest as one'
complete -c ktrace -n '__ktrace_in attach run' -l interval -x -a '1s 10s 1m' -d 'Tables while it runs, too'
complete -c ktrace -n '__ktrace_in attach run' -l ns -d 'Times in whole nanoseconds'
complete -c ktrace -n '__ktrace_in attach run ctl' -l every -x -d 'Only hits N, 2N, 3N, ...'
complete -c ktrace -n '__ktrace_in attach run ctl' -l chance -x -d 'Then each with this probability'
complete -c ktrace -n '__ktrace_in attach run ctl' -l seed -x -d 'Make --chance choose the same hits again'
complete -c ktrace -n '__ktrace_in attach run ctl' -l first -x -d 'Then the first N of those'
complete -c ktrace -n '__ktrace_in attach run stack profile plugin' -s o -l output -r -F -d 'Write events and tables to FILE'
complete -c ktrace -n '__ktrace_in attach run stack profile diff ctl' -l format -x -a 'text json csv folded chrome' -d 'Text, or for other programs'
complete -c ktrace -n '__ktrace_in attach run diff' -l expect -x -d 'What must hold, else status 3'
complete -c ktrace -n '__ktrace_in attach run diff' -l report -r -F -d 'Expectations as JUnit (.xml) or TAP (.tap)'
complete -c ktrace -n '__ktrace_in attach run stack profile' -s q -l quiet -d 'No notices and no summary'
complete -c ktrace -n '__ktrace_in profile' -l waiting -d 'Folded stacks, or the graph, of what is waited for'
complete -c ktrace -n '__ktrace_in attach run' -s v -l verbose -d 'Show with Attached where each probe is'
complete -c ktrace -n '__ktrace_in run' -a '(__fish_complete_command)'
complete -c ktrace -n '__ktrace_in list' -F -l lines -d 'List the source lines, too'
complete -c ktrace -n '__ktrace_in list' -F -l inlines -d 'List the inlined instances, too'
complete -c ktrace -n '__ktrace_in ctl' -a 'list stats add remove enable disable on off'
complete -c ktrace -n '__ktrace_in plugin' -F -a build
