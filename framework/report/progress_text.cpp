// The words of progress lines.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/core/printable.h"
#include "framework/report/progress.h"

namespace mulligan {
namespace {

constexpr int longest_bar = 20;
constexpr int shortest_bar = 8;

// Three digits at least: "9.31", "12.3", "1,234".
std::string figure(double value) {
  if (!std::isfinite(value)) return "?";
  if (value >= 99.95) return grouped(std::llround(value));
  return fmt::format("{:.{}f}", value, value >= 9.995 ? 1 : 2);
}

// The decimal prefix in which `bytes` has one to three digits before the point.
std::pair<double, std::string_view> byte_unit(double bytes) {
  constexpr std::array<std::pair<double, std::string_view>, 4> units = {
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
  for (const auto& unit : units) {
    if (bytes >= unit.first) return unit;
  }
  return {1, "B"};
}

// Characters that a terminal shows; escape sequences are not among them.
int shown_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string bar(double fraction, int length, const Terminal& terminal) {
  const auto full = static_cast<std::size_t>(std::lround(fraction * length));
  const std::string done(full, '='), rest(static_cast<std::size_t>(length) - full, '-');
  return toned(done, Tone::good, terminal.colour) + toned(rest, Tone::faint, terminal.colour);
}

// The first `columns` characters.
std::string cut(std::string_view text, int columns) {
  std::size_t end = 0;
  for (int shown = -1; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++shown == columns) break;
  }
  return std::string(text.substr(0, end));
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

std::string percent(const ProgressView& view) {
  return view.fraction ? fmt::format("{:.0f} %", std::floor(100 * *view.fraction)) : "";
}

std::string times(const ProgressView& view, std::string_view between) {
  std::string text = clock_text(view.elapsed_seconds);
  if (view.left_seconds >= 0) text += fmt::format("{}{} left", between, clock_text(view.left_seconds));
  return text;
}

}  // namespace

std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string count_text(double done, double total, std::string_view unit) {
  if (unit == "bytes") {
    const auto [size, name] = byte_unit(std::max(done, total));
    const auto text = [whole = size](double b) {
      return whole == 1 ? grouped(std::llround(b)) : figure(b / whole);
    };
    return fmt::format("{}{} {}", text(done), total > 0 ? " of " + text(total) : "", name);
  }
  const std::string counted = grouped(std::llround(done));
  if (total <= 0) return fmt::format("{} {}", counted, unit);
  return fmt::format("{} of {} {}", counted, grouped(std::llround(total)), unit);
}

std::string rate_text(double per_second, std::string_view unit) {
  if (unit != "bytes") return fmt::format("{} {}/s", figure(per_second), unit);
  const auto [size, name] = byte_unit(per_second);
  return fmt::format("{} {}/s", figure(per_second / size), name);
}

std::string live_line(const ProgressView& view, const Terminal& terminal) {
  const int columns = std::max(terminal.columns - 1, 1);  // the last one would break the line
  const auto line = [&](int bar_length, bool count, bool rate) {
    return joined({toned(view.what, Tone::strong, terminal.colour),
                   view.fraction && bar_length > 0 ? bar(*view.fraction, bar_length, terminal) : "",
                   percent(view), count ? view.count : "", rate ? view.rate : "",
                   toned(times(view, "  "), Tone::faint, terminal.colour)},
                  "  ");
  };
  for (const bool count : {true, false}) {
    const int spare = columns - shown_width(line(0, count, true)) - 2;
    if (view.fraction && spare >= shortest_bar) return line(std::min(spare, longest_bar), count, true);
    const std::string text = line(0, count, true);
    if (!count && shown_width(text) <= columns) return text;
    if (count && !view.fraction && shown_width(text) <= columns) return text;
  }
  const std::string text = line(0, false, false);
  if (shown_width(text) <= columns) return text;
  return cut(joined({view.what, percent(view), times(view, "  ")}, "  "), columns);
}

std::string plain_line(const ProgressView& view) {
  return fmt::format("{}: {}", view.what,
                     joined({percent(view), view.count, view.rate, times(view, ", ")}, ", "));
}

}  // namespace mulligan
