#include "voice.h"

#include "base/text.h"
#include "command_line/options.h"
#include "complain.h"

namespace ktrace::cli {

namespace {

Result<trace::Order> read_order(const std::vector<std::string> &arguments) {
    auto invocation = parse(arguments);
    if (!invocation) return fail(invocation.error());
    if (invocation->command != Command::ctl || invocation->help || invocation->version)
        return fail(Error::Kind::usage, "this is no order to a ktrace that traces");
    return std::move(invocation->order);
}

} // namespace

trace::Voice voice() { return {complain, notify, describe, read_order}; }

} // namespace ktrace::cli
