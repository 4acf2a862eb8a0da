#include "base/result.h"

namespace ktrace {

Error::Error() = default;
Error::Error(Kind k, std::string m, std::string h, std::string s, int c, int w)
    : kind(k), message(std::move(m)), hint(std::move(h)), source(std::move(s)), column(c), width(w) {}
Error::Error(const Error &) = default;
Error::Error(Error &&) noexcept = default;
Error &Error::operator=(const Error &) = default;
Error &Error::operator=(Error &&) noexcept = default;
Error::~Error() = default;

Error Error::with(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
}

tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
tl::unexpected<Error> fail(Error::Kind kind, std::string message, std::string hint) {
    return fail(Error(kind, std::move(message), std::move(hint)));
}

} // namespace ktrace
