// KT_CHECK: an invariant of ours. Always on; a broken one ends ktrace (the target is released by the kernel, and its
// text restored by its guardian), with what the CheckDumps there are have to say.
#pragma once

namespace ktrace {

[[noreturn]] void check_failed(const char *condition, const char *file, int line);

/// Something that helps to understand a failed KT_CHECK: shown on standard error then, for as long as it lives. All are
/// made and destroyed by one thread. `dump` allocates nothing and checks nothing.
class CheckDump {
  public:
    CheckDump(const CheckDump &) = delete;
    CheckDump &operator=(const CheckDump &) = delete;
    virtual void dump() const noexcept = 0;
    const CheckDump *next() const { return next_; }

  protected:
    CheckDump();
    ~CheckDump();

  private:
    CheckDump *next_;
};

} // namespace ktrace

#define KT_CHECK(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            ::ktrace::check_failed(#condition, __FILE__, __LINE__);                                                    \
    } while (0)
