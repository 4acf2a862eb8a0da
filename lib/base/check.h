// KT_CHECK: an invariant of ours. Always on; a broken one ends ktrace (the target is released by the kernel, and its
// text restored by whoever guards it).
#pragma once

namespace ktrace {
[[noreturn]] void check_failed(const char *condition, const char *file, int line);
}

#define KT_CHECK(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            ::ktrace::check_failed(#condition, __FILE__, __LINE__);                                                    \
    } while (0)
