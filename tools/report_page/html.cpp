#include "tools/report_page/html.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>

namespace mulligan::report {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the UTF-8 character at the start of `text`; 0 when it is none, or one that XML excludes.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >> 5 == 0x6 ? 2 : first >> 4 == 0xE ? 3 : first >> 3 == 0x1E ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0x2) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF, excluded = code == 0xFFFE || code == 0xFFFF;
  return code < smallest[length] || code > 0x10FFFF || surrogate || excluded ? 0 : length;
}

// Its class attribute, with a blank before it; empty: none.
const char* class_of(const Cell& cell) {
  return cell.number ? " class=\"number\"" : cell.centre ? " class=\"centre\"" : "";
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(character.size());
    if (bytes == 0) {
      escaped += replacement;
    } else if (character == "&") {
      escaped += "&amp;";
    } else if (character == "<") {
      escaped += "&lt;";
    } else if (character == ">") {
      escaped += "&gt;";
    } else if (character == "\"") {
      escaped += "&quot;";
    } else if (character == "'") {
      escaped += "&#39;";
    } else {
      escaped += character;
    }
  }
  return escaped;
}

std::string html_of(const Table& table, std::string_view css_class) {
  const auto& [head, rows] = table;
  std::string html = fmt::format("<div class=\"scroll\"><table class=\"{}\">", escape(css_class));
  if (!head.empty()) {
    html += "<thead><tr>";
    for (std::size_t i = 0; i < head.size(); ++i) {
      const Cell below = !rows.empty() && i < rows[0].size() ? rows[0][i] : Cell{};
      html += fmt::format("<th{}>{}</th>", class_of(below), escape(head[i]));
    }
    html += "</tr></thead>";
  }
  html += "<tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      // On a narrow page a row is a list, and each cell says its column.
      const std::string label =
          i < head.size() && !head[i].empty() ? fmt::format(" data-label=\"{}\"", escape(head[i])) : "";
      html += fmt::format("<td{}{}>{}</td>", class_of(row[i]), label, escape(row[i].text));
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
  return fmt::format("<p class=\"note\">{}</p>\n", escape(text));
}

std::string details(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(summary), body);
}

std::string plain_text(const Table& table) {
  // Characters, not bytes.
  const auto width_of = [](const std::string& text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  };
  std::vector<std::vector<Cell>> rows(1);
  for (std::size_t i = 0; i < table.head.size(); ++i)
    rows[0].push_back({table.head[i], !table.rows.empty() && table.rows[0][i].number});
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::vector<std::size_t> widths(table.head.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i].text));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i].text), ' ');
      text += (i > 0 ? "  " : "") + (row[i].number ? blanks + row[i].text : row[i].text + blanks);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

constexpr const char* not_finite = "not finite";

std::string bytes_text(double bytes) {
  constexpr std::array prefixes = {"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (std::abs(bytes) >= 999.5 && prefix + 1 < prefixes.size()) {
    bytes /= 1000;
    ++prefix;
  }
  if (!std::isfinite(bytes)) return not_finite;
  const int decimals = prefix == 0 || std::abs(bytes) >= 99.95 ? 0 : std::abs(bytes) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}B", bytes, decimals, prefixes[prefix]);
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

std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : not_finite;
}

}  // namespace mulligan::report
