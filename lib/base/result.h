// Failures of the world (refused, denied, not found, gone), as values. Our own bugs are KT_CHECK's business (check.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace ktrace {

/// Why something could not be done. `message` is a clause without a full stop that names the thing and says why; `hint`
/// is what the user can do about it (may be empty). For texts that the user gave, `source` is the text and
/// [column, column + width) the part of it that is wrong (0-based bytes).
struct Error {
    enum class Kind {
        refused,   // cannot be done here, and trying again does not help
        usage,     // a syntax error in SPEC, EXPR or an option: exit status 2
        denied,    // the kernel or a policy forbids it
        not_found, // no such process, symbol, file
        given_up,  // its caller does not wait for it any more
        gone,      // the traced task or process has ended: an ordinary event
        fault,     // unmapped memory of the target
        system,    // a system call failed for a reason of its own
    };

    Kind kind = Kind::refused;
    std::string message;
    std::string hint;
    std::string source;
    int column = -1;
    int width = 1;

    // Out of line: each Result would bring them into each file that has one.
    Error();
    Error(Kind kind, std::string message, std::string hint = {}, std::string source = {}, int column = -1,
          int width = 1);
    Error(const Error &);
    Error(Error &&) noexcept;
    Error &operator=(const Error &);
    Error &operator=(Error &&) noexcept;
    ~Error();

    /// The same error with a context in front: `context: message`.
    Error with(std::string_view context) &&;
};

template <class T> using Result = tl::expected<T, Error>;
using Status = Result<void>;

tl::unexpected<Error> fail(Error error);
tl::unexpected<Error> fail(Error::Kind kind, std::string message, std::string hint = {});

} // namespace ktrace
