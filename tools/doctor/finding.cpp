#include "tools/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace mulligan::doctor {
namespace {

std::size_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "PASS";
    case Verdict::warn:
      return "WARN";
    case Verdict::fail:
      return "FAIL";
    case Verdict::skip:
      return "SKIP";
  }
  return "";
}

Verdict judge(double value, const Limits& limits) {
  // A number that is none passes nothing.
  if (std::isnan(value) || value < limits.fail_below || value > limits.fail_above) return Verdict::fail;
  return value < limits.warn_below || value > limits.warn_above ? Verdict::warn : Verdict::pass;
}

Verdict worst(const std::vector<Finding>& findings) {
  if (count_of(findings, Verdict::fail) > 0) return Verdict::fail;
  return count_of(findings, Verdict::warn) > 0 ? Verdict::warn : Verdict::pass;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{} {}  {}: {}\n", verdict_name(finding.verdict), finding.id, finding.title,
                        finding.measured);
    if (finding.verdict == Verdict::pass) continue;
    text += fmt::format("          {}; {}.\n", finding.message, finding.hint);
  }
  return text + fmt::format("{} passed, {} warnings, {} failed, {} skipped\n",
                            count_of(findings, Verdict::pass), count_of(findings, Verdict::warn),
                            count_of(findings, Verdict::fail), count_of(findings, Verdict::skip));
}

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = {{"verdict", verdict_name(worst(findings))},
                                 {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& f : findings) {
    json["findings"].push_back({{"id", f.id},
                                {"title", f.title},
                                {"verdict", verdict_name(f.verdict)},
                                {"measured", f.measured},
                                {"threshold", f.threshold},
                                {"message", f.message},
                                {"hint", f.hint}});
  }
  return json;
}

}  // namespace mulligan::doctor
