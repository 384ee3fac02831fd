// The shell of every page: head, style, script, title.
#pragma once

#include <string>
#include <string_view>

namespace mulligan::report {

// A whole HTML file, which is well-formed XML, too. It asks for no other file and stays complete without
// JavaScript, which only shows values under the pointer. `title` is text, `subtitle` and `body` are HTML.
std::string page(std::string_view title, std::string_view subtitle, std::string_view body);

}  // namespace mulligan::report
