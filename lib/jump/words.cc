#include "jump/words.h"

namespace ktrace::jump {

std::string_view words(arch::NoJump why) {
    using arch::NoJump;
    switch (why) {
    case NoJump::not_built: return "ktrace has no jumps for this processor";
    case NoJump::no_instruction: return "the bytes there are not known, or are no instructions";
    case NoJump::unmovable: return "an instruction there does not work elsewhere";
    case NoJump::system_call: return "a system call is among the instructions there";
    case NoJump::breakpoint: return "a breakpoint is among the instructions there";
    case NoJump::undefined: return "an instruction that is there to fault (ud2) is among those there";
    case NoJump::transaction: return "a transaction begins there (xbegin)";
    case NoJump::trap_flag: return "the flags are loaded there (popf)";
    case NoJump::call_not_last: return "a call there would return into the jump";
    case NoJump::call_with_shadow_stack:
        return "a call is among the instructions there, and the thread has a shadow stack";
    case NoJump::branch_into_middle: return "a branch leads to the middle of an instruction there";
    case NoJump::maybe_data: return "behind a jump or return there may lie data";
    case NoJump::function_ends: return "the function ends before a jump has room";
    case NoJump::other_site: return "another probe lies within the jump";
    case NoJump::landing_pad: return "indirect branches may lead there, and to no jump (BTI)";
    case NoJump::restartable_sequence: return "it is in a restartable sequence";
    case NoJump::out_of_reach: return "the copy of the instructions there would not reach their operands";
    case NoJump::no_room: return "no free memory is where the jump could lead";
    }
    return "";
}

} // namespace ktrace::jump
