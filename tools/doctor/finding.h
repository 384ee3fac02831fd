// What a check of `mulligan doctor` found.
#pragma once

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace mulligan::doctor {

enum class CheckOutcome { pass, warn, fail, skip };
const char* verdict_name(CheckOutcome verdict);  // "PASS", "WARN", "FAIL", "SKIP"

struct Finding {
  std::string id;  // "D22": the number of the check in docs/doctor.md
  std::string title;
  CheckOutcome verdict = CheckOutcome::pass;
  std::string measured;   // with units
  std::string threshold;  // what fails, and what warns
  std::string message;    // one sentence without full stop; empty where it passed
  std::string hint;       // what to do; empty where it passed

  // Makes it worse; keeps message and hint of the first of the worst.
  void note(CheckOutcome worse, std::string what, std::string what_to_do);
};

// A finding that passed so far.
Finding begin_finding(const char* id, std::string title, std::string threshold);
// `f` with a verdict; message and hint are kept unless it passed.
Finding judged(Finding f, CheckOutcome verdict, std::string message, std::string hint);
Finding failed(Finding f, std::string message, std::string hint);

// A number held against limits on both sides: outside of the failing ones it fails, outside of the warning ones it warns.
inline constexpr double no_limit = std::numeric_limits<double>::infinity();
struct Limits {
  double fail_below = -no_limit, fail_above = no_limit, warn_below = -no_limit, warn_above = no_limit;
};
CheckOutcome judge(double value, const Limits& limits);

// The worst of all: skip counts as pass here.
CheckOutcome worst(const std::vector<Finding>& findings);

// A line for each finding, with message and hint below it where it did not pass; ends with a line of counts.
std::string findings_text(const std::vector<Finding>& findings);
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// One of its findings. Throws std::exception where `json` is none.
Finding finding_from_json(const nlohmann::ordered_json& json);

}  // namespace mulligan::doctor
