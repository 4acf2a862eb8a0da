# What bash offers at <TAB>, by the completion of this source tree.

NAME functions of the process behind -p
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; sleep 300 & COMP_WORDS=(ktrace attach -p $! -r nanosl); COMP_CWORD=5; until grep -qx sleep /proc/$!/comm; do :; done; _ktrace; printf '%s\n' "${COMPREPLY[@]}" | sort -u; kill %1
EXPECT nanosleep

NAME functions of a process behind its name, of which there are several
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; cp "$(command -v sleep)" napping; for i in 1 2; do ./napping 300 & until grep -qx napping /proc/$!/comm; do :; done; done; COMP_WORDS=(ktrace attach -p napping --entry nanosl); COMP_CWORD=5; _ktrace; printf '%s\n' "${COMPREPLY[@]}" | sort -u; kill %1 %2
EXPECT nanosleep

NAME names of processes behind -p
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; cp "$(command -v sleep)" napping; ./napping 300 & until grep -qx napping /proc/$!/comm; do :; done; COMP_WORDS=(ktrace attach -p nappi); COMP_CWORD=3; _ktrace; echo "${COMPREPLY[@]}"; kill %1
EXPECT napping

NAME options of the command
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; COMP_WORDS=(ktrace attach -p 1 --every 2 --max-e); COMP_CWORD=6; _ktrace; echo "${COMPREPLY[@]}"
EXPECT --max-events

NAME functions of the program of run, with and without --
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; COMP_CWORD=3; COMP_WORDS=(ktrace run -r mai --sort total ktrace list); _ktrace; printf '%s\n' "${COMPREPLY[@]}" | grep -x main; COMP_WORDS=(ktrace run -r mai -- ktrace list); _ktrace; printf '%s\n' "${COMPREPLY[@]}" | grep -x main
EXPECT main
EXPECT main

NAME a program behind the options of run
RUN complete() { :; }; . "$(dirname "$(command -v ktrace)")/../../../completions/ktrace.bash"; touch sleepy; COMP_WORDS=(ktrace run -j main --stack sleepy --max-e); COMP_CWORD=6; _ktrace; echo "${#COMPREPLY[@]}"; COMP_WORDS=(ktrace run -j main --stack bash slee); _ktrace; echo "${COMPREPLY[@]}"
EXPECT 0
EXPECT sleepy
