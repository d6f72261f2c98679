# Pipes, subshells, traps, co-processes, here documents, exit statuses.
set -o pipefail
for i in $(seq 20); do echo "$((i * i % 7)) $(echo $i | tr 0-9 a-j)"; done | sort | uniq -c | sort -rn
(exit 3) || echo "status $?"
false | true
echo "pipefail $?"
words=$(cat <<TEXT | wc -w
one two three $(printf '%s ' four five)
TEXT
)
echo "words $words"
coproc CAT { cat; }
pid=$CAT_PID
echo "through a coprocess" >&"${CAT[1]}"
read -r line <&"${CAT[0]}"
echo "$line"
eval "exec ${CAT[1]}>&-"
wait "$pid"
trap 'echo "got USR1"' USR1
kill -USR1 $$
(trap 'echo "subshell ends"' EXIT; : $(true))
diff <(seq 3) <(seq 4) || echo "differ $?"
for i in 1 2 3; do (sleep 0.0$i; exit $i) & done
for job in $(jobs -p); do wait "$job"; echo "job $?"; done
exec 5>file; echo "to five" >&5; exec 5>&-; cat file
[[ "text123" =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
ls /proc/self/fd | wc -l
bash -c 'kill -TERM $$'
echo "killed $?"
echo "to standard error" >&2
command_not_there
exit 11
