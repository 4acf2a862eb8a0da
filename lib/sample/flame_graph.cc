// The file is complete without its script: places and widths stand in it, as shares of the whole width, and a title
// shows each function's numbers. The script only sets places, widths and names anew.
#include "sample/flame_graph.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/xml.h"

namespace ktrace::sample {

namespace {

/// A function in its callers' calls.
struct Call {
    std::uint64_t looks = 0;
    std::map<std::string, Call> callees;
};

Call tree_of(const std::vector<Path> &paths) {
    Call root;
    for (const auto &[names, looks] : paths) {
        root.looks += looks;
        Call *call = &root;
        for (const std::string &name : names) {
            call = &call->callees[name];
            call->looks += looks;
        }
    }
    return root;
}

std::size_t depth_of(const Call &call) {
    std::size_t deepest = 0;
    for (const auto &[name, callee] : call.callees) deepest = std::max(deepest, depth_of(callee));
    return deepest + 1;
}

/// From yellow to red, the same for a name in every graph.
std::string colour_of(std::string_view name) {
    std::uint32_t hash = 2166136261U; // FNV-1a
    for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return fmt::format("rgb({},{},{})", 205 + hash % 50, 80 + (hash >> 8) % 150, (hash >> 16) % 60);
}

constexpr int row_height = 17, head_height = 60;

class Drawing {
  public:
    Drawing(std::uint64_t all, int height) : all_{all}, height_{height} {}

    void draw(const std::string &name, const Call &call, std::uint64_t from, int row) {
        const double part = share(call.looks);
        const int y = height_ - (row + 1) * row_height - 4;
        out_ += fmt::format(R"(<g class="call" data-from="{}" data-looks="{}" data-row="{}">)", from, call.looks, row);
        out_ += fmt::format("<title>{} ({} looks, {:.1f}%)</title>", text::in_xml(name), call.looks, part);
        out_ += fmt::format(R"(<rect x="{:.4f}%" y="{}" width="{:.4f}%" height="{}" fill="{}"/>)", share(from), y, part,
                            row_height - 1, colour_of(name));
        out_ += fmt::format(R"(<text x="{:.4f}%" y="{}" dx="3"></text></g>)", share(from), y + row_height - 5);
        out_ += '\n';
        for (const auto &[callee, its] : call.callees) {
            draw(callee, its, from, row + 1);
            from += its.looks;
        }
    }
    const std::string &text() const { return out_; }

  private:
    double share(std::uint64_t looks) const { return 100.0 * static_cast<double>(looks) / static_cast<double>(all_); }

    std::uint64_t all_;
    int height_;
    std::string out_;
};

// No name of a traced program is in it.
constexpr std::string_view script = R"js(
(() => {
const svg = document.documentElement, calls = [...document.querySelectorAll('g.call')];
const all = Number(svg.dataset.looks), status = document.getElementById('status');
const of = g => ({from: Number(g.dataset.from), looks: Number(g.dataset.looks), row: Number(g.dataset.row)});
const name = g => g.querySelector('title').textContent.replace(/ \(\d+ looks, [\d.]+%\)$/, '');
let zoomed = {from: 0, looks: all, row: 0};
function show() {
  const width = svg.getBoundingClientRect().width;
  for (const g of calls) {
    const c = of(g), rect = g.querySelector('rect'), text = g.querySelector('text');
    const outside = c.from + c.looks <= zoomed.from || c.from >= zoomed.from + zoomed.looks;
    g.style.display = outside ? 'none' : '';
    if (outside) continue;
    const from = Math.max(c.from, zoomed.from), to = Math.min(c.from + c.looks, zoomed.from + zoomed.looks);
    const x = 100 * (from - zoomed.from) / zoomed.looks, w = 100 * (to - from) / zoomed.looks;
    rect.setAttribute('x', x + '%');
    rect.setAttribute('width', w + '%');
    rect.style.opacity = c.row < zoomed.row ? 0.5 : 1;
    text.setAttribute('x', x + '%');
    const room = Math.floor((w * width / 100 - 6) / 7), full = name(g);
    text.textContent = room < 3 ? '' : full.length <= room ? full : full.slice(0, room - 2) + '..';
  }
}
for (const g of calls) g.addEventListener('click', () => { zoomed = of(g); show(); });
document.getElementById('reset').addEventListener('click', () => { zoomed = {from: 0, looks: all, row: 0}; show(); });
document.getElementById('search').addEventListener('input', event => {
  const wanted = event.target.value.toLowerCase();
  let looks = 0, end = -1;
  for (const g of calls) {
    const found = wanted !== '' && name(g).toLowerCase().includes(wanted), c = of(g);
    g.classList.toggle('found', found);
    if (found && c.from >= end) { looks += c.looks; end = c.from + c.looks; }
  }
  status.textContent = wanted === '' ? '' : (100 * looks / all).toFixed(1) + '% found';
});
window.addEventListener('resize', show);
show();
})();
)js";

constexpr std::string_view style = R"css(
text { font: 12px monospace; pointer-events: none; }
g.call { cursor: pointer; }
g.call:hover rect { stroke: black; }
g.found rect { fill: rgb(220,80,220); }
#reset { cursor: pointer; pointer-events: all; fill: blue; }
#title { font-size: 16px; }
)css";

} // namespace

std::string flame_graph(const std::string &title, const std::vector<Path> &paths) {
    const Call root = tree_of(paths);
    const int height = head_height + static_cast<int>(depth_of(root)) * row_height;
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out += fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{}" data-looks="{}">)", height,
                       root.looks);
    out += "\n<style>" + std::string(style) + "</style>\n";
    out += fmt::format(R"(<text id="title" x="10" y="22">{}</text>)", text::in_xml(title)) + "\n";
    out += R"(<text id="reset" x="10" y="44">whole graph</text>)"
           R"(<foreignObject x="110" y="29" width="220" height="26">)"
           R"(<input xmlns="http://www.w3.org/1999/xhtml" id="search" placeholder="search" style="width:200px"/>)"
           R"(</foreignObject><text id="status" x="340" y="44"></text>)"
           "\n";
    Drawing drawing(std::max<std::uint64_t>(root.looks, 1), height);
    drawing.draw("all", root, 0, 0);
    out += drawing.text();
    out += "<script><![CDATA[" + std::string(script) + "]]></script>\n</svg>\n";
    return out;
}

} // namespace ktrace::sample
