# Work for bash: functions, subshells, pipes, a trap; leaves with status 3.
down() {
	local n=$1
	if ((n > 0)); then down $((n - 1)); fi
	echo -n "$n "
}
down 20
for i in {1..20}; do
	x=$(echo "$i" | tr 0-9 a-j)
	y+="$x"
done
echo "${y//a/Z}"
declare -A map=([a]=1 [b]=2)
echo "${map[a]}${map[b]}" | wc -c
trap 'echo bye' EXIT
case abc in a*) echo match ;; esac
exit 3
