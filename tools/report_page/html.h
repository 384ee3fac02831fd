// Text inside of HTML. Pages are written so that they are well-formed XML, too: every tag is closed.
#pragma once

#include <string>
#include <string_view>

#include "tools/stats/markdown_table.h"

namespace mulligan::report {

// `text` for an element's content or a quoted attribute: & < > " ' as entities; what XML does not allow
// (control characters, bytes that are not UTF-8) as U+FFFD.
std::string escape(std::string_view text);

using stats::Table;
// <table> in a box that scrolls sideways on a narrow page.
std::string html_of(const Table& table, std::string_view css_class = "");

// <section id="id"> with a heading; `body` is HTML.
std::string section(std::string_view id, std::string_view title, std::string_view body);
// Figures side by side where the page is wide enough; HTML.
std::string charts(const std::string& figures);
// <p class="note"> and <p class="warning">, escaped.
std::string note(std::string_view text);
std::string warning(std::string_view text);
// HTML that is folded away below `summary`.
std::string details(std::string_view summary, std::string_view body);

// Numbers as people read them; "not finite" for NaN and infinities.
std::string bytes_text(double bytes);         // "1.25 MB"; decimal prefixes, three digits
std::string seconds_text(double seconds);     // "2.31 s", "12 min 5 s"
std::string fixed(double value, int digits);  // `digits` after the point
std::string bpb_text(double value);           // five of them
std::string short_number(double value);       // four significant digits without trailing zeros
std::string count_text(double value);         // "16,000,000"

// A whole HTML file, which is well-formed XML, too. It refers to no other file and is complete without JavaScript.
// `title` is text, `subtitle` and `body` are HTML.
std::string page(std::string_view title, std::string_view subtitle, std::string_view body);

}  // namespace mulligan::report
