#include "tools/report_page/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace mulligan::report {

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
