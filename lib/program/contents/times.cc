// Times: std::chrono's durations as a number of their unit, points in time as the duration since their clock's
// beginning.
#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

bool show_duration(Writer &w) {
    auto count = find(w.type(), "__r");
    if (!count) count = find(w.type(), "__rep_");
    if (!count || (count->type->kind != Type::Kind::integer && count->type->kind != Type::Kind::floating)) return false;
    w.begin(Form::quantity, w.type().alias_of ? *w.type().alias_of : w.type());
    w.add(count->offset);
    w.show(*count->type);
    w.end();
    return true;
}

bool show_time_point(Writer &w) {
    auto since = find(w.type(), "__d", Type::Kind::structure);
    if (!since) since = find(w.type(), "__d_", Type::Kind::structure);
    if (!since) return false;
    w.add(since->offset);
    w.show(*since->type);
    return true;
}

} // namespace ktrace::program::contents
