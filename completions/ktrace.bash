# bash completion for ktrace(1)

# Processes of this user, by number and by name.
_ktrace_processes() {
    local uid process name
    uid=$(id -u)
    for process in /proc/[0-9]*; do
        [ -O "$process" ] || [ "$uid" -eq 0 ] || continue
        [ -e "$process/exe" ] && read -r name <"$process/comm" && printf '%s\n' "${process#/proc/}" "$name"
    done 2>/dev/null
}

# Where the program of `ktrace run` stands on the command line: behind --, or the first word that is neither an option nor
# an option's value; 0: it is not there yet. $1: only words before this one are looked at.
_ktrace_program() {
    local i
    for ((i = 2; i < $1; i++)); do
        case ${COMP_WORDS[i]} in
        --) echo $((i + 1)); return ;;
        -[pkjrwo] | --pid | --probe | --entry | --ret | --watch | --plugin | --if | --inside | --print | --set-arg | --set-reg | --set-ret | --set-errno | --expect | --maxactive | --by | --sort | --top | --interval | --every | \
            --chance | --seed | --first | --output | --format | --report | --duration | --max-events | --max-overhead | --engine)
            ((i++))
            ;;
        -*) ;;
        *) echo "$i"; return ;;
        esac
    done
    echo 0
}

# The function names of what the command line traces: -p PID|NAME, or the program.
_ktrace_functions() {
    local target=() i
    for ((i = 2; i < ${#COMP_WORDS[@]}; i++)); do
        case ${COMP_WORDS[i]} in
        -p | --pid)
            target=(-p "${COMP_WORDS[i + 1]%%,*}")
            [ -d "/proc/${target[1]}" ] || target[1]=$(pidof -s -- "${target[1]}") # one of several
            ;;
        esac
    done
    if [ "${COMP_WORDS[1]}" = run ]; then
        i=$(_ktrace_program "${#COMP_WORDS[@]}")
        [ "$i" -gt 0 ] && target=("$(type -P -- "${COMP_WORDS[i]}")")
    fi
    [ "${#target[@]}" -gt 0 ] && [ -n "${target[-1]}" ] || return
    "${COMP_WORDS[0]}" list "${target[@]}" ${1:+"$1*"} 2>/dev/null | sed -n 's/^[0-9a-f]* .*[ *&]\([A-Za-z_][A-Za-z0-9_.:~]*\)(.*/\1/p; s/^[0-9a-f]* \([^ (]*\) \[.*/\1/p'
}

_ktrace() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'attach run stack profile diff list ctl plugin repair bench doctor --help --version' -- "$cur")
        return
    fi
    if [ "$command" = run ]; then
        i=$(_ktrace_program "$COMP_CWORD")
        if [ "$i" -eq "$COMP_CWORD" ]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
            return
        elif [ "$i" -gt 0 ]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
    fi
    case $prev in
    -p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(_ktrace_processes)" -- "$cur"); return ;;
    -k | --probe | -j | --entry | -r | --ret)
        mapfile -t COMPREPLY < <(compgen -W "$(_ktrace_functions "$cur")" -- "$cur")
        return
        ;;
    --plugin) mapfile -t COMPREPLY < <(compgen -f -X '!*.so' -- "$cur"; compgen -d -- "$cur"); return ;;
    -o | --output | --report) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    --format) mapfile -t COMPREPLY < <(compgen -W 'text json csv folded chrome' -- "$cur"); return ;;
    --duration | --interval) mapfile -t COMPREPLY < <(compgen -W '1s 10s 1m' -- "$cur"); return ;;
    --if | --print | --by)
        mapfile -t COMPREPLY < <(compgen -W 'arg0 args. retval errno duration tid pid comm nsecs func caller stack var.' -- "$cur")
        return
        ;;
    --sort) mapfile -t COMPREPLY < <(compgen -W 'total self count avg min p50 p90 p99 max function' -- "$cur"); return ;;
    --engine) mapfile -t COMPREPLY < <(compgen -W 'auto trap jump' -- "$cur"); return ;;
    -F | --frequency | --max-events | --max-overhead | --maxactive | --top | --every | --chance | --seed | --first) return ;;
    esac
    local tracing='-f --follow --allow-missing --duration --max-events --max-overhead --engine --lossless -k --probe -j --entry -r --ret -w --watch --plugin --if --inside --print --no-args --full
        --post --regs --stack --set-arg --set-reg --set-ret --set-errno --skip --expect --maxactive --count --stats --hist --by --sort --top --interval --ns --every --chance --seed --first -o --output --format --report
        -q --quiet -v --verbose -h --help -V --version'
    local probing='-k --probe -j --entry -r --ret -w --watch --if --inside --print --no-args --full --post --regs --stack --maxactive --count --stats --hist --by
        --every --chance --seed --first --allow-missing --format'
    case $command in
    attach) mapfile -t COMPREPLY < <(compgen -W "-p --pid $tracing" -- "$cur") ;;
    run)
        mapfile -t COMPREPLY < <(compgen -W "$tracing --" -- "$cur"; [ "${cur#-}" = "$cur" ] && compgen -c -- "$cur")
        ;;
    ctl)
        mapfile -t COMPREPLY < <(compgen -W "-p --pid list stats add remove enable disable on off $probing" -- "$cur")
        ;;
    stack) mapfile -t COMPREPLY < <(compgen -W '-p --pid -o --output --format -q --quiet -h --help -V --version' -- "$cur") ;;
    profile)
        mapfile -t COMPREPLY < <(compgen -W '-p --pid -F --frequency --duration --top -o --output --format --waiting -q --quiet -h --help -V --version' -- "$cur")
        ;;
    diff) mapfile -t COMPREPLY < <(compgen -W '--expect --format --report -h --help -V --version' -- "$cur"; compgen -f -- "$cur") ;;
    repair) mapfile -t COMPREPLY < <(compgen -W '-p --pid -h --help -V --version' -- "$cur") ;;
    plugin)
        mapfile -t COMPREPLY < <(compgen -W 'build -o --output -h --help' -- "$cur"; compgen -f -- "$cur")
        ;;
    list)
        mapfile -t COMPREPLY < <(compgen -W '-p --pid --lines --inlines -h --help -V --version' -- "$cur"; compgen -f -- "$cur")
        ;;
    esac
}

complete -o filenames -o bashdefault -F _ktrace ktrace
