#include "program/lower/build.h"

#include <algorithm>

#include "program/lower/code.h"
#include "program/lower/lower.h"
#include "program/lower/lower_place.h"
#include "program/lower/types.h"

namespace ktrace::program {

namespace {

using Role = Field::Role;

/// Builds one program; each member function adds one thing that is wanted.
class Builder {
  public:
    explicit Builder(const Recipe &recipe) : recipe_(recipe) {
        std::size_t blobs =
            recipe.print.size() + recipe.by.size() + recipe.arguments.size() + recipe.injections.size(); // at most
        if (recipe.kind == 'w') capture_.next = 8;                                                       // one blob
        if (recipe.kind == 'r') capture_.next = (blobs * 4 + 7) / 8 * 8;
    }
    Built finish();

  private:
    MomentCode &moment(Moment m) { return code_.moment(m); }
    bool is_return() const { return recipe_.kind == 'r'; }
    Moment first_moment() const;
    bool aggregates() const { return recipe_.table != Table::Kind::none; }

    void condition();
    void selection();
    void table();
    void table_value(Moment when);
    void event(Moment when);
    void post_event();
    void return_event();
    void arguments_of(Moment when);
    std::size_t argument_value(const NamedBinding &argument, Instrs &instrs);
    void result();
    void extras(Moment when);
    void watched();
    bool decides_late() const;
    bool injects(Injection::Moment at) const;
    bool comes_too_early(const Injection &injection) const;
    void inject(const Injection &injection);
    void inject_event(const Injection &injection, Field::Role role, std::uint32_t destination);
    void print(const Tree &tree, Moment when, Scope &scope);
    void at_return(const Tree &tree, Role role, std::vector<Instrs> &parts, Lowering::Style style);
    Instrs shown(const Tree &tree, Scope &scope, ArgumentCapture *capture, Lowering::Style style);
    void begin_blob(Instrs &instrs, bool key);
    std::uint32_t end_blob(Instrs instrs, std::size_t payload);
    void field(Moment when, Role role, std::string name, std::size_t lines = 0) {
        built_.fields[static_cast<std::size_t>(when)].push_back({role, std::move(name), lines});
    }
    void save_entry_registers();
    void limit_payloads();
    void find_needs(Moment when);

    const Recipe &recipe_;
    Built built_;
    Code code_;
    ArgumentCapture capture_{code_, *recipe_.entry, moment(Moment::call).body, 0};
    std::vector<std::size_t> blob_payloads_; // bytes of each, at most
    std::size_t payload_ = 0;                // of the value shown last
};

Moment Builder::first_moment() const {
    switch (recipe_.kind) {
    case 'j': return Moment::entry;
    case 'r': return Moment::call;
    case 'w': return Moment::watch;
    default: return Moment::pre;
    }
}

/// On a return probe the condition is decided at entry, unless it uses the outcome.
bool Builder::decides_late() const {
    return is_return() && recipe_.condition && uses(*recipe_.condition, *recipe_.entry).outcome;
}

void Builder::condition() {
    if (!recipe_.condition) return;
    bool late = decides_late();
    MomentCode &decides = moment(late ? Moment::ret : first_moment());
    decides.has_condition = true;
    Lowering lowering(code_, late ? *recipe_.after : *recipe_.entry, *recipe_.condition, decides.condition,
                      late ? &capture_ : nullptr);
    if (Status status = lowering.condition(); !status) {
        built_.misfits.push_back({recipe_.condition, status.error()});
        decides.condition = {{.op = Opcode::push_na}};
        if (late) moment(first_moment()).has_condition = true; // it never holds: no call takes an instance
        if (late) moment(first_moment()).condition = decides.condition;
    }
}

/// Where the condition is decided, right behind it. Tables see all hits that pass; so the return knows whether its
/// call was selected where something is injected at both.
void Builder::selection() {
    if (recipe_.selection.selects_all()) return;
    bool before = injects(Injection::Moment::before), after = injects(Injection::Moment::at_return);
    bool early = !aggregates() || before;
    if (!early && !after) return;
    bool late = is_return() && moment(Moment::ret).has_condition && !moment(Moment::call).has_condition;
    moment(late || !early ? Moment::ret : first_moment()).selects = true;
    if (!aggregates() || !before || !after) return;
    code_.selection_at = capture_.next;
    capture_.next += saved_slot_size;
}

bool Builder::injects(Injection::Moment at) const {
    return std::any_of(recipe_.injections.begin(), recipe_.injections.end(), [&](const Injection &each) {
        return each.moment == at && !each.misfit && !comes_too_early(each);
    });
}

/// True where it is to be done before the condition is decided.
bool Builder::comes_too_early(const Injection &injection) const {
    return injection.moment == Injection::Moment::before && decides_late();
}

/// Behind the condition and the selection. Where there are events, what was done is part of them.
void Builder::inject(const Injection &injection) {
    if (injection.misfit) {
        built_.misfits.push_back({injection.value, *injection.misfit});
        return;
    }
    if (comes_too_early(injection)) {
        const std::string &text = injection.value->source;
        built_.misfits.push_back(
            {injection.value,
             {Error::Kind::refused, "`" + injection.name + "` would be set before it is known whether --if holds",
              "that is decided at the return, since it looks at retval, duration or errno: leave these out", text, 0,
              static_cast<int>(text.size())}});
        return;
    }
    Role role = injection.destination.skips ? Role::skipped : Role::injected;
    auto destination = static_cast<std::uint32_t>(code_.destinations.size());
    code_.destinations.push_back(injection.destination);
    if (!aggregates()) return inject_event(injection, role, destination);
    bool before = injection.moment == Injection::Moment::before;
    Moment when = before ? first_moment() : Moment::ret;
    Instrs instrs;
    Lowering lowering(code_, before ? *recipe_.entry : *recipe_.after, *injection.value, instrs,
                      before ? nullptr : &capture_);
    Status status = lowering.injected(*injection.type, destination, false);
    if (!status)
        built_.misfits.push_back({injection.value, status.error()});
    else
        moment(when).injections.push_back(std::move(instrs));
    moment(when).runs = true;
}

void Builder::inject_event(const Injection &injection, Role role, std::uint32_t destination) {
    bool before = injection.moment == Injection::Moment::before;
    bool saved = before && is_return(); // done at entry, reported at the return
    Instrs instrs;
    if (saved) begin_blob(instrs, false);
    Lowering lowering(code_, before ? *recipe_.entry : *recipe_.after, *injection.value, instrs,
                      before ? nullptr : &capture_);
    if (Status status = lowering.injected(*injection.type, destination, true); !status) {
        built_.misfits.push_back({injection.value, status.error()});
        instrs.resize(saved ? 1 : 0);
        instrs.push_back({.op = Opcode::emit_na});
    }
    Moment when = is_return() ? Moment::ret : first_moment();
    field(when, role, injection.name);
    if (saved) {
        std::uint32_t blob = end_blob(std::move(instrs), 8);
        instrs = {{.op = Opcode::copy_blob, .index = blob}};
    }
    moment(when).body.push_back(std::move(instrs));
}

Instrs Builder::shown(const Tree &tree, Scope &scope, ArgumentCapture *capture, Lowering::Style style) {
    Instrs instrs;
    Lowering lowering(code_, scope, tree, instrs, capture);
    Result<std::size_t> bytes = lowering.shown(style);
    if (bytes) {
        payload_ = *bytes;
        return instrs;
    }
    built_.misfits.push_back({&tree, bytes.error()});
    payload_ = 0;
    return {{.op = Opcode::emit_na}};
}

void Builder::begin_blob(Instrs &instrs, bool key) { instrs.push_back({.op = Opcode::begin_blob, .is_signed = key}); }

std::uint32_t Builder::end_blob(Instrs instrs, std::size_t payload) {
    std::uint32_t number = code_.blobs++;
    instrs.push_back({.op = Opcode::end_blob, .index = number});
    moment(Moment::call).body.push_back(std::move(instrs));
    blob_payloads_.push_back(payload);
    return number;
}

/// An EXPR of a return probe: one that uses arguments, and nothing that is known at the return alone, is evaluated at
/// entry, and so is a key with all that it follows; others at the return, with the arguments' values of the entry.
void Builder::at_return(const Tree &tree, Role role, std::vector<Instrs> &parts, Lowering::Style style) {
    Uses used = uses(tree, *recipe_.entry);
    if (role == Role::print) field(Moment::ret, role, tree.source);
    const bool is_key = style == Lowering::Style::key;
    const bool at_entry = !used.outcome && (is_key ? used.arguments || used.present : used.arguments && !used.present);
    if (!at_entry) {
        parts.push_back(shown(tree, *recipe_.after, &capture_, style));
        return;
    }
    Instrs instrs;
    begin_blob(instrs, is_key);
    Instrs value = shown(tree, *recipe_.entry, nullptr, style);
    instrs.insert(instrs.end(), value.begin(), value.end());
    std::uint32_t blob = end_blob(std::move(instrs), payload_);
    parts.push_back({{.op = Opcode::copy_blob, .index = blob}});
}

void Builder::table_value(Moment when) {
    MomentCode &at = moment(when);
    at.has_value = true;
    if (!recipe_.table_of) {
        at.value = {{.op = Opcode::push_duration}};
        at.value_is_unsigned = true;
        return;
    }
    Lowering lowering(code_, is_return() ? *recipe_.after : *recipe_.entry, *recipe_.table_of, at.value,
                      is_return() ? &capture_ : nullptr);
    Result<const value::Type *> type = lowering.number();
    if (!type) {
        built_.misfits.push_back({recipe_.table_of, type.error()});
        at.value = {{.op = Opcode::push_na}};
        return;
    }
    at.value_is_float = types::is_floating(**type);
    at.value_is_unsigned = !at.value_is_float && !types::is_signed(**type);
}

void Builder::table() {
    Moment when = is_return() ? Moment::ret : first_moment();
    MomentCode &at = moment(when);
    at.aggregates = at.runs = true;
    for (const Tree *by : recipe_.by) {
        if (is_return())
            at_return(*by, Role::stack, at.key, Lowering::Style::key);
        else
            at.key.push_back(shown(*by, *recipe_.entry, nullptr, Lowering::Style::key));
    }
    if (recipe_.table != Table::Kind::count) table_value(when);
}

void Builder::arguments_of(Moment when) {
    if (!recipe_.shows_arguments) return;
    for (const NamedBinding &argument : recipe_.arguments) {
        Instrs instrs;
        field(when, Role::argument, argument.name);
        if (argument.shown && argument.at_return && when == Moment::ret) {
            moment(when).body.push_back(shown(*argument.shown, *recipe_.after, &capture_, Lowering::Style::print));
            continue;
        }
        if (when == Moment::ret) begin_blob(instrs, false);
        std::size_t bytes = argument_value(argument, instrs);
        if (when != Moment::ret) {
            moment(when).body.push_back(std::move(instrs));
            continue;
        }
        std::uint32_t blob = end_blob(std::move(instrs), bytes);
        moment(when).body.push_back({{.op = Opcode::copy_blob, .index = blob}});
    }
}

/// As it is at the entry. Gives the bytes that it may take.
std::size_t Builder::argument_value(const NamedBinding &argument, Instrs &instrs) {
    if (!argument.shown || argument.at_return)
        return Lowering::show_binding(argument.binding, argument.hex, code_, *recipe_.entry, instrs);
    const Instrs value = shown(*argument.shown, *recipe_.entry, nullptr, Lowering::Style::print);
    instrs.insert(instrs.end(), value.begin(), value.end());
    return payload_;
}

void Builder::result() {
    if (!recipe_.shows_result || !recipe_.result) return;
    field(Moment::ret, Role::retval, "retval");
    Instrs instrs;
    Lowering::show_binding(*recipe_.result, recipe_.result_hex, code_, *recipe_.after, instrs);
    moment(Moment::ret).body.push_back(std::move(instrs));
    if (!recipe_.error) return;
    field(Moment::ret, Role::error_number, "errno");
    moment(Moment::ret).body.push_back(shown(*recipe_.error, *recipe_.after, &capture_, Lowering::Style::print));
}

void Builder::extras(Moment when) {
    if (recipe_.regs) {
        field(when, Role::regs, "regs");
        moment(when).body.push_back({{.op = Opcode::emit_registers}});
    }
    if (recipe_.stack >= 0) {
        field(when, Role::stack, "stack", static_cast<std::size_t>(recipe_.stack));
        auto frames = recipe_.stack == 0 ? max_frames
                                         : std::min<std::size_t>(max_frames, static_cast<std::size_t>(recipe_.stack));
        moment(when).body.push_back({{.op = Opcode::emit_stack, .imm = static_cast<std::int64_t>(frames)}});
    }
}

void Builder::print(const Tree &tree, Moment when, Scope &scope) {
    field(when, Role::print, tree.source);
    moment(when).body.push_back(shown(tree, scope, nullptr, Lowering::Style::print));
}

void Builder::event(Moment when) {
    moment(when).runs = moment(when).writes_event = true;
    if (when == Moment::entry) arguments_of(when);
    if (when == Moment::watch) watched();
    for (const Tree *tree : recipe_.print) print(*tree, when, *recipe_.entry);
    extras(when);
}

/// The old value, as Moment::call has left it after the hit before; the new one; the place of the write.
void Builder::watched() {
    if (recipe_.watched) {
        Instrs instrs;
        begin_blob(instrs, false);
        std::size_t bytes = Lowering::show_binding(*recipe_.watched, false, code_, *recipe_.entry, instrs);
        std::uint32_t blob = end_blob(std::move(instrs), bytes);
        field(Moment::watch, Role::before, "old");
        moment(Moment::watch).body.push_back({{.op = Opcode::copy_blob, .index = blob}});
        field(Moment::watch, Role::now, "new");
        Instrs now;
        Lowering::show_binding(*recipe_.watched, false, code_, *recipe_.entry, now);
        moment(Moment::watch).body.push_back(std::move(now));
    }
    field(Moment::watch, Role::at, "at");
    moment(Moment::watch).body.push_back({{.op = Opcode::emit_stack, .imm = 1}});
}

void Builder::post_event() {
    moment(Moment::post).runs = moment(Moment::post).writes_event = true;
    for (const Tree *tree : recipe_.post_print) print(*tree, Moment::post, *recipe_.after);
    extras(Moment::post);
}

void Builder::return_event() {
    moment(Moment::ret).runs = moment(Moment::ret).writes_event = true;
    arguments_of(Moment::ret);
    result();
    for (const Tree *tree : recipe_.print)
        at_return(*tree, Role::print, moment(Moment::ret).body, Lowering::Style::print);
    extras(Moment::ret);
}

/// A record holds all of its nodes: where there are very many, each gets less.
/// A result may lie where a register pointed at the entry, and at the return no register has its address (arm64's x8).
/// Moment::call saves that register.
void Builder::save_entry_registers() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> saved; // its number and 1; where in the capture
    auto look = [&](Instrs &instrs) {
        for (Instr &instr : instrs) {
            if (instr.op != Opcode::push_unavailable || instr.index == 0) continue;
            auto found = std::ranges::find(saved, instr.index, &std::pair<std::uint32_t, std::uint32_t>::first);
            if (found == saved.end()) {
                const auto at = static_cast<std::uint32_t>(capture_.next);
                capture_.next += saved_slot_size;
                found = saved.emplace(saved.end(), instr.index, at);
                Instrs save = lower_register(static_cast<std::uint16_t>(instr.index - 1));
                save.push_back({.op = Opcode::save_slot, .index = at});
                moment(Moment::call).body.push_back(std::move(save));
            }
            instr = {.op = Opcode::push_captured, .index = found->second};
        }
    };
    MomentCode &at = moment(Moment::ret);
    look(at.condition);
    look(at.value);
    for (Instrs &part : at.key) look(part);
    for (Instrs &part : at.injections) look(part);
    for (Instrs &part : at.body) look(part);
}

void Builder::limit_payloads() {
    std::size_t nodes = 1;
    for (const auto &fields : built_.fields) nodes = std::max(nodes, fields.size());
    std::size_t room = (max_record - sizeof(RecordHeader) - 1024) / nodes;
    code_.payload_limit = std::min(max_value, room > node_overhead ? room - node_overhead : 0);
}

/// With floating point (program/run/floats.h).
bool computes(const Instr &instr) {
    const bool converts = instr.op == Opcode::load_float || instr.op == Opcode::object_float;
    return converts || (instr.op == Opcode::emit_raw && instr.is_float) ||
           (instr.op >= Opcode::fadd && instr.op <= Opcode::ftruth);
}

/// From the instructions: what must be read of the thread before this moment's code runs.
void Builder::find_needs(Moment when) {
    MomentCode &at = moment(when);
    Needs &needs = at.needs;
    auto look = [&](const Instrs &instrs) {
        for (const Instr &instr : instrs) {
            bool reads = instr.op == Opcode::push_register || instr.op == Opcode::object_register;
            if ((reads && instr.is_float) || instr.op == Opcode::object_upper) needs.floating = true;
            needs.computes = needs.computes || computes(instr);
            needs.registers = needs.registers || (reads && !instr.is_float) || instr.op == Opcode::emit_registers ||
                              instr.op == Opcode::emit_stack || instr.op == Opcode::emit_caller ||
                              instr.op == Opcode::tls || instr.op == Opcode::inject;
            needs.nsecs = needs.nsecs || instr.op == Opcode::push_nsecs;
            needs.duration = needs.duration || instr.op == Opcode::push_duration;
        }
    };
    look(at.condition);
    look(at.value);
    for (const Instrs &part : at.key) look(part);
    for (const Instrs &part : at.injections) look(part);
    for (const Instrs &part : at.body) look(part);
    needs.time = needs.time || needs.nsecs || at.writes_event;
    needs.duration = needs.duration || (when == Moment::ret && at.writes_event);
    at.runs = at.runs || at.has_condition || at.selects || !at.body.empty();
    needs.runs = at.runs;
}

Built Builder::finish() {
    condition();
    selection();
    if (aggregates())
        table();
    else if (is_return())
        return_event();
    else
        event(first_moment());
    for (const Injection &injection : recipe_.injections) inject(injection);
    if (recipe_.post && recipe_.kind == 'k' && !aggregates()) post_event();
    if (is_return()) save_entry_registers();
    limit_payloads();
    if ((is_return() || recipe_.kind == 'w') && (!moment(Moment::call).body.empty() || code_.selection_at)) {
        code_.capture_fixed = code_.capture_size = capture_.next;
        for (std::size_t payload : blob_payloads_)
            code_.capture_size += std::min(payload, code_.payload_limit) + node_overhead;
    }
    for (std::size_t m = 0; m < moments; ++m) find_needs(static_cast<Moment>(m));
    built_.program = Program(flatten(code_));
    return std::move(built_);
}

/// Of the values that events would show. A table shows none of them, but a request for one that is nowhere is reported.
std::vector<MisfitExpr> misfits_of_events(const Recipe &recipe) {
    Recipe events;
    events.kind = recipe.kind;
    events.entry = recipe.entry;
    events.after = recipe.after;
    events.print = recipe.print;
    events.post_print = recipe.post_print;
    events.post = recipe.post;
    return Builder(events).finish().misfits;
}

} // namespace

Built build(const Recipe &recipe) {
    Built built = Builder(recipe).finish();
    if (recipe.table == Table::Kind::none) return built;
    auto unshown = misfits_of_events(recipe);
    built.misfits.insert(built.misfits.end(), unshown.begin(), unshown.end());
    return built;
}

} // namespace ktrace::program
