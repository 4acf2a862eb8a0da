#!/usr/bin/env bash
# Installs into an empty directory: the binary runs, and the man page and the completions are where Debian expects them.
#
# usage: install.sh BUILD_DIRECTORY
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$1" --prefix /usr >/dev/null
"$root/usr/bin/ktrace" --version | grep -q '^ktrace [0-9]'
for file in share/man/man1/ktrace.1 share/man/man7/ktrace-plugin.7 share/man/man7/ktrace-examples.7 share/man/man7/ktrace-expect.7 \
    share/man/man7/ktrace-internals.7 libexec/ktrace/ktrace-plugin-host share/bash-completion/completions/ktrace share/zsh/vendor-completions/_ktrace \
    share/fish/vendor_completions.d/ktrace.fish; do
    [ -s "$root/usr/$file" ] || { echo "$file is not installed"; exit 1; }
done
# An installed ktrace builds plugins with what was installed beside it.
if command -v gcc >/dev/null; then
    printf '#include <linux/module.h>\n#include <linux/kprobes.h>\nint init_module(void) { return 0; }\n' >"$root/p.c"
    "$root/usr/bin/ktrace" plugin build "$root/p.c" -o "$root/p.so"
    headers=$(gcc -M -isystem "$root/usr/include/ktrace" "$root/p.c")
    [[ $headers == *"$root/usr/include/ktrace/linux/kprobes.h"* ]] || { echo "the headers are not installed"; exit 1; }
fi
