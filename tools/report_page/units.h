// Numbers as people read them.
#pragma once

#include <string>

namespace mulligan::report {

std::string bytes_text(double bytes);      // "1.25 MB"; decimal prefixes, three digits
std::string seconds_text(double seconds);  // "2.31 s", "12 min 5 s"
// `digits` behind the point; "not finite" for NaN and infinities.
std::string fixed(double value, int digits);
// Four significant digits without trailing zeros; "not finite" as above.
std::string short_number(double value);

}  // namespace mulligan::report
