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

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;
};

// <table> in a box that scrolls sideways on a narrow page.
std::string html_of(const Table& table, std::string_view css_class = "");
// Columns padded to their widest cell, two blanks between them; ends with a newline.
std::string plain_text(const Table& table);

// <section id="id"> with a heading; `body` is HTML.
std::string section(std::string_view id, std::string_view title, std::string_view body);
// Figures side by side where the page is wide enough; HTML.
std::string charts(const std::string& figures);
// <p class="note">, escaped.
std::string note(std::string_view text);
// HTML that is folded away below `summary`.
std::string details(std::string_view summary, std::string_view body);

std::string bytes_text(double bytes);      // "1.25 MB"; decimal prefixes, three digits
std::string seconds_text(double seconds);  // "2.31 s", "12 min 5 s"
// `digits` after the point; "not finite" for NaN and infinities.
std::string fixed(double value, int digits);
// Four significant digits without trailing zeros; "not finite" as above.
std::string short_number(double value);

// A whole HTML file, which is well-formed XML, too. It refers to no other file and is complete without JavaScript.
// `title` is text, `subtitle` and `body` are HTML.
std::string page(std::string_view title, std::string_view subtitle, std::string_view body);

}  // namespace mulligan::report
