#include "tools/report_page/html.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"
#include "framework/core/utf8.h"
#include "framework/report/progress.h"

namespace mulligan::report {
namespace {

// Its class attribute, with a blank before it; of the left: none.
const char* class_of(const Table& table, std::size_t column) {
  const std::string& all = table.columns;
  const char letter = all.empty() ? 'l' : all[std::min(column, all.size() - 1)];
  return letter == 'r' ? " class=\"number\"" : letter == 'c' ? " class=\"centre\"" : "";
}

std::string paragraph(const char* css_class, std::string_view text) {
  return fmt::format("<p class=\"{}\">{}</p>\n", css_class, escape(text));
}

}  // namespace

std::string escape(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> entities[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}};
  constexpr std::string_view allowed = "\t\n\r", beyond_xml[] = {"\xEF\xBF\xBE", "\xEF\xBF\xBF"};
  std::string escaped;
  while (!text.empty()) {
    const std::size_t bytes = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(character.size());
    const bool control =
        static_cast<unsigned char>(character[0]) < 0x20 && allowed.find(character[0]) == allowed.npos;
    const auto* entity = std::ranges::find(entities, character, [](const auto& pair) { return pair.first; });
    if (bytes == 0 || control || std::ranges::find(beyond_xml, character) != std::end(beyond_xml)) {
      escaped += "\xEF\xBF\xBD";  // U+FFFD
    } else {
      escaped += entity == std::end(entities) ? character : entity->second;
    }
  }
  return escaped;
}

std::string html_of(const Table& table, std::string_view css_class) {
  const auto& head = table.head;
  std::string html = fmt::format("<div class=\"scroll\"><table class=\"{}\">", escape(css_class));
  if (!head.empty()) {
    html += "<thead><tr>";
    for (std::size_t i = 0; i < head.size(); ++i)
      html += fmt::format("<th{}>{}</th>", class_of(table, i), escape(head[i]));
    html += "</tr></thead>";
  }
  html += "<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      // On a narrow page a row is a list, and each cell says its column.
      const std::string label =
          i < head.size() && !head[i].empty() ? fmt::format(" data-label=\"{}\"", escape(head[i])) : "";
      html += fmt::format("<td{}{}>{}</td>", class_of(table, i), label, escape(row[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string section(std::string_view id, std::string_view title, std::string_view body) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", escape(id), escape(title), body);
}

std::string charts(const std::string& figures) {
  return "<div class=\"charts\">\n" + figures + "</div>\n";
}

std::string note(std::string_view text) {
  return paragraph("note", text);
}
std::string warning(std::string_view text) {
  return paragraph("warning", text);
}

std::string details(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(summary), body);
}

constexpr const char* not_finite = "not finite";

std::string bytes_text(double bytes) {
  return std::isfinite(bytes) ? mulligan::count_text(bytes, 0, "bytes") : not_finite;
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return not_finite;
  if (seconds < 0.9995) return fmt::format("{:.1f} ms", 1e3 * seconds);
  if (seconds < 99.95) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string fixed(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : not_finite;
}
std::string bpb_text(double value) {
  return fixed(value, 5);
}
std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : not_finite;
}
std::string count_text(double value) {
  return std::isfinite(value) && std::abs(value) < 9e15 ? grouped(std::llround(value)) : short_number(value);
}

}  // namespace mulligan::report
