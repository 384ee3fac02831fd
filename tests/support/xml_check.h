// Whether a page is well-formed XML: a check for tests, no parser.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// The first fault of `text` as a sentence, with the text around it; "" for none. Checks that tags are closed in order, that
// attributes are quoted and named once, that < and & stand for markup alone, and that there is one outermost element.
std::string xml_fault(std::string_view text);

}  // namespace mulligan
