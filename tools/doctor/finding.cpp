#include "tools/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "framework/core/json_fields.h"

namespace mulligan::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* verdicts[] = {"PASS", "WARN", "FAIL", "SKIP"};

CheckOutcome verdict_of(const Json& json) {
  const auto* found = std::ranges::find(verdicts, json.get<std::string>());
  if (found == std::end(verdicts)) throw std::invalid_argument(fmt::format("{} is no verdict", json.dump()));
  return static_cast<CheckOutcome>(found - verdicts);
}

std::size_t count_of(const std::vector<Finding>& findings, CheckOutcome verdict) {
  return static_cast<std::size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
}

}  // namespace

template <typename Fields>
void describe(Fields& fields, Finding& f) {
  fields("id", f.id)("title", f.title).custom("verdict", f.verdict, verdict_name, verdict_of);
  fields("measured", f.measured)("threshold", f.threshold)("message", f.message)("hint", f.hint);
}

const char* verdict_name(CheckOutcome verdict) {
  return verdicts[static_cast<int>(verdict)];
}

void Finding::note(CheckOutcome worse, std::string what, std::string what_to_do) {
  if (worse <= verdict) return;
  verdict = worse;
  message = std::move(what);
  hint = std::move(what_to_do);
}

Finding begin_finding(const char* id, std::string title, std::string threshold) {
  return {id, std::move(title), CheckOutcome::pass, "", std::move(threshold), "", ""};
}

Finding judged(Finding f, CheckOutcome verdict, std::string message, std::string hint) {
  f.note(verdict, std::move(message), std::move(hint));
  return f;
}

Finding failed(Finding f, std::string message, std::string hint) {
  return judged(std::move(f), CheckOutcome::fail, std::move(message), std::move(hint));
}

CheckOutcome judge(double value, const Limits& limits) {
  // A number that is none passes nothing.
  if (std::isnan(value) || value < limits.fail_below || value > limits.fail_above) return CheckOutcome::fail;
  return value < limits.warn_below || value > limits.warn_above ? CheckOutcome::warn : CheckOutcome::pass;
}

CheckOutcome worst(const std::vector<Finding>& findings) {
  if (count_of(findings, CheckOutcome::fail) > 0) return CheckOutcome::fail;
  return count_of(findings, CheckOutcome::warn) > 0 ? CheckOutcome::warn : CheckOutcome::pass;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{} {}  {}: {}\n", verdict_name(finding.verdict), finding.id, finding.title,
                        finding.measured);
    if (finding.verdict == CheckOutcome::pass) continue;
    text += fmt::format("          {}; {}.\n", finding.message, finding.hint);
  }
  return text + fmt::format("{} passed, {} warnings, {} failed, {} skipped\n",
                            count_of(findings, CheckOutcome::pass), count_of(findings, CheckOutcome::warn),
                            count_of(findings, CheckOutcome::fail), count_of(findings, CheckOutcome::skip));
}

Json findings_json(const std::vector<Finding>& findings) {
  Json json = {{"verdict", verdict_name(worst(findings))}, {"findings", Json::array()}};
  for (const Finding& finding : findings) json["findings"].push_back(fields_to_json(finding));
  return json;
}

Finding finding_from_json(const Json& json) {
  return fields_from_json<Finding>(json);
}

}  // namespace mulligan::doctor
