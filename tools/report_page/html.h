// Text inside of HTML. Pages are written so that they are well-formed XML, too: every tag is closed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulligan::report {

// `text` for an element's content or a quoted attribute: & < > " ' as entities; what XML does not allow
// (control characters, bytes that are not UTF-8) as U+FFFD.
std::string escape(std::string_view text);

// A table cell: text, and whether it is a number (aligned right) or stands in the middle.
struct Cell {
  std::string text;  // not yet escaped
  bool number = false;
  bool centre = false;
};

// <table> with a head and rows, inside of a box that scrolls sideways where the page is narrower.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<Cell>>& rows,
                  std::string_view css_class = "");

// <section id="id"> with a heading; `body` is HTML.
std::string section(std::string_view id, std::string_view title, std::string_view body);
// Figures side by side where the page is wide enough; HTML.
std::string charts(const std::string& figures);
// <p class="note">, escaped.
std::string note(std::string_view text);

// Numbers as people read them.

std::string bytes_text(double bytes);      // "1.25 MB"; decimal prefixes, three digits
std::string seconds_text(double seconds);  // "2.31 s", "12 min 5 s"
// `digits` behind the point; "not finite" for NaN and infinities.
std::string fixed(double value, int digits);
// Four significant digits without trailing zeros; "not finite" as above.
std::string short_number(double value);

// A whole HTML file, which is well-formed XML, too. It asks for no other file and stays complete without
// JavaScript, which only shows values under the pointer. `title` is text, `subtitle` and `body` are HTML.
std::string page(std::string_view title, std::string_view subtitle, std::string_view body);

}  // namespace mulligan::report
