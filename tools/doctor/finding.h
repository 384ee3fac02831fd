// What a check of `mulligan doctor` found.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace mulligan::doctor {

enum class Verdict { pass, warn, fail, skip };
const char* verdict_name(Verdict verdict);  // "PASS", "WARN", "FAIL", "SKIP"

struct Finding {
  std::string id;  // "D22": the number of the check in docs/doctor.md
  std::string title;
  Verdict verdict = Verdict::pass;
  std::string measured;   // with units
  std::string threshold;  // what fails, and what warns
  std::string message;    // one sentence without full stop; empty where it passed
  std::string hint;       // what to do; empty where it passed
};

// A number held against limits on both sides: outside of the failing ones it fails, outside of the
// warning ones it warns. Limits that do not exist are infinite.
struct Limits {
  double fail_below, fail_above, warn_below, warn_above;
};
Verdict judge(double value, const Limits& limits);

// The worst of all: skip counts as pass here.
Verdict worst(const std::vector<Finding>& findings);

// A line for each finding, with message and hint below it where it did not pass; ends with a line of counts.
std::string findings_text(const std::vector<Finding>& findings);
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace mulligan::doctor
