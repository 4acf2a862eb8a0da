#include "base/xml.h"

namespace ktrace::text {

std::string in_xml(std::string_view raw) {
    std::string out;
    for (char each : raw) {
        switch (each) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\n': out += "&#10;"; break;
        default: out += each;
        }
    }
    return out;
}

} // namespace ktrace::text
