// Any bytes on the socket of `ktrace ctl`: an order, an answer, more to come, or refused.
#include "ctl/wire.h"
#include "fuzz.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::string_view text = fuzz::text(data, size);
    if (auto order = ctl::read_order(text); order && *order) {
        auto again = ctl::read_order(ctl::write_order(**order));
        fuzz::require(again && *again && **again == **order);
    }
    if (auto answer = ctl::read_answer(text); answer && *answer) {
        auto again = ctl::read_answer(ctl::write_answer(**answer));
        fuzz::require(again && *again && (*again)->out == (*answer)->out && (*again)->err == (*answer)->err);
    }
    return 0;
}
