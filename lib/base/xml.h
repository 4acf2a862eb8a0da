// XML: text as it stands in an element or an attribute.
#pragma once

#include <string>
#include <string_view>

namespace ktrace::text {

/// `raw` with what XML gives a meaning (& < > ") and line ends written as references. Other control characters, which
/// XML has no way to write, are for the caller to take out.
std::string in_xml(std::string_view raw);

} // namespace ktrace::text
