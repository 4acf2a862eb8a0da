// Any bytes on the socket of `ktrace ctl`: an order, an answer, more to come, or refused.
#include "fuzz.h"
#include "session/control_wire.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::string_view text = fuzz::text(data, size);
    if (auto order = session::read_order(text); order && *order) {
        auto again = session::read_order(session::write_order(**order));
        fuzz::require(again && *again && **again == **order);
    }
    if (auto answer = session::read_answer(text); answer && *answer) {
        auto again = session::read_answer(session::write_answer(**answer));
        fuzz::require(again && *again && (*again)->out == (*answer)->out && (*again)->err == (*answer)->err);
    }
    return 0;
}
