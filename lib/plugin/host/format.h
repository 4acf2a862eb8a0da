// Format: printf as the kernel's printk has it (Documentation/printk-formats.txt): pointers without 0x, and what may
// stand behind %p. Floating point is ours: functions of programs have such arguments.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace ktrace::plugin::host {

/// Writes at most `size` bytes, the NUL among them. Returns the length of the whole text.
int format_text(char *into, std::size_t size, const char *format, va_list arguments);

/// name+0xoffset/0xsize [module] of an address in the target or in the plugin; without the offset as %ps has it.
std::size_t format_symbol(char *into, std::size_t size, unsigned long address, bool with_offset);

} // namespace ktrace::plugin::host
