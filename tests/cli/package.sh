#!/usr/bin/env bash
# The Debian package of a build tree: what it says of itself, what is in it, and that ktrace works from wherever it is
# unpacked, with the host for plugins and the headers that lie beside it.
#
# usage: package.sh BUILD_DIRECTORY VERSION
set -euo pipefail
build=$(realpath "$1")
version=$2
source=$(realpath "$(dirname "$0")/../..")
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
fail() { echo "package: $*"; exit 1; }

# cpack installs what is built, and builds nothing.
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$room/made" >"$room/log" 2>&1 || { cat "$room/log"; fail "cpack failed"; }
package=$room/made/ktrace_${version}_$(dpkg --print-architecture).deb
[ -f "$package" ] || fail "there is no $package"

field() { dpkg-deb --field "$package" "$1"; }
expect() { [[ $(field "$1") =~ $2 ]] || fail "$1 is: $(field "$1")"; }
expect Package '^ktrace$'
expect Version "^$version\$"
expect Architecture "^$(dpkg --print-architecture)\$"
expect Section '^devel$'
expect Maintainer '^[^<]+ <[^@ ]+@[^@ ]+>$'
expect Description $'^tracer for running processes[^\n]*\n ktrace attaches'
expect Recommends '^libdebuginfod1$'
expect Homepage '^$'
for library in 'libc6 \(>= [0-9.]+\)' libelf1 libdw1 libzydis liblzma5; do expect Depends "(^|, )$library"; done

root=$room/root
dpkg-deb -x "$package" "$root"
{
    echo usr/bin/ktrace
    echo usr/libexec/ktrace/ktrace-plugin-host
    for headers in "$source/lib/plugin/include" "$source/arch/$(dpkg --print-architecture | sed s/amd64/x86_64/)/plugin/include"; do
        (cd "$headers" && find . -type f -printf 'usr/include/ktrace/%P\n')
    done
    (cd "$source/man" && for page in *; do echo "usr/share/man/man${page##*.}/$page"; done)
    echo usr/share/bash-completion/completions/ktrace
    echo usr/share/zsh/vendor-completions/_ktrace
    echo usr/share/fish/vendor_completions.d/ktrace.fish
    printf 'usr/share/doc/ktrace/%s\n' changelog copyright
} | sort >"$room/wanted"
(cd "$root" && find . ! -type d -printf '%P\n') | sort >"$room/packed"
diff "$room/wanted" "$room/packed" || fail "these files differ"
[ -z "$(find "$root" -mindepth 1 ! -perm -a=r)" ] || fail "not all may read all of it"
for program in bin/ktrace libexec/ktrace/ktrace-plugin-host; do
    sections=$(readelf -SW "$root/usr/$program")
    [[ $sections != *.symtab* && $sections != *.debug_* ]] || fail "$program is not stripped"
done

ktrace=$root/usr/bin/ktrace
cd "$room"
[ "$("$ktrace" --version)" = "ktrace $version" ] || fail "it says $("$ktrace" --version)"

cat >program.c <<'END'
__attribute__((noinline)) int twice(int n) {
    __asm__ volatile("");
    return 2 * n;
}
int main(void) { return twice(3) + twice(4) - 14; }
END
gcc -O1 -g program.c -o program
"$ktrace" run -q -r twice -j twice -- ./program >events || fail "a trace ended with $?"
for event in 'twice\(n=3\)$' 'twice\(n=3\) returned 6 ' 'twice\(n=4\)$' 'twice\(n=4\) returned 8 '; do
    [ "$(grep -cE " $event" events)" -eq 1 ] || fail "a trace printed: $(cat events)"
done

cat >plugin.c <<'END'
#include <linux/kprobes.h>
#include <linux/module.h>
static int before(struct kprobe *p, struct pt_regs *regs) {
    pr_info("twice of %lu\n", regs->di);
    return 0;
}
static struct kprobe probe = {.symbol_name = "twice", .pre_handler = before};
static int __init begin(void) { return register_kprobe(&probe); }
static void __exit end(void) { unregister_kprobe(&probe); }
module_init(begin) module_exit(end) MODULE_LICENSE("GPL");
END
"$ktrace" plugin build plugin.c || fail "the plugin is not built"
"$ktrace" run --plugin ./plugin.so -- ./program >said 2>&1 || fail "the plugin ended with $?: $(cat said)"
for n in 3 4; do grep -q "twice of $n\$" said || fail "the plugin said: $(cat said)"; done

# Nothing of the build tree stands in for what is not there.
mv "$root/usr/libexec" "$root/usr/include" "$room"
if "$ktrace" plugin build plugin.c >said 2>&1; then fail "plugin build has found other headers"; fi
grep -q "<linux/kprobes.h> of ktrace is not at $root/usr/bin/../include/ktrace/" said || fail "plugin build said: $(cat said)"
if "$ktrace" run --plugin ./plugin.so -- ./program >said 2>&1; then fail "--plugin has found another host"; fi
grep -q "host for plugins is not at $root/usr/bin/../libexec/ktrace/" said || fail "--plugin said: $(cat said)"
