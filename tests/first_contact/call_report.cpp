#include "tests/first_contact/call_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulligan::first_contact {
namespace {

// How much of the limits is used; beyond 1 they do not hold. Where they are 0, any difference is beyond.
double used(double largest, double rms, const Limits& limits) {
  const auto share = [](double value, double limit) {
    return value == 0 ? 0 : limit > 0 ? value / limit : 1e300;
  };
  return std::max(share(largest, limits.largest), share(rms, limits.rms));
}

}  // namespace

const char* verdict_name(CallVerdict verdict) {
  switch (verdict) {
    case CallVerdict::agrees:
      return "agrees";
    case CallVerdict::differs:
      return "differs";
    case CallVerdict::failed:
      return "failed";
    case CallVerdict::not_compared:
      return "not compared";
    case CallVerdict::taken_over:
      return "taken over";
  }
  return "";
}

void judge(CallReport& report, const std::string& reference, const std::string& name,
           const Agreement& agreement, const Limits& limits) {
  const bool first = report.reference.empty(), was_wrong = report.verdict == CallVerdict::differs;
  const bool holds = agreement.holds(limits);
  const bool further =
      used(agreement.largest(), agreement.rms(), limits) > used(report.largest, report.rms, report.limits);
  report.reference = reference;
  if (first || (!holds && !was_wrong) || (further && holds != was_wrong)) {
    report.argument = name;
    report.largest = agreement.largest();
    report.rms = agreement.rms();
    report.limits = limits;
  }
  if (!holds && (!was_wrong || report.argument == name)) {
    report.sentence = agreement.not_numbers() > 0
                          ? fmt::format("{} of {} elements of {} are NaN or infinite on one side only",
                                        agreement.not_numbers(), agreement.elements(), name)
                          : fmt::format(
                                "{} differs by {:.2e} of its largest number and {:.2e} of its root mean "
                                "square (limits {:.0e} and {:.0e})",
                                name, agreement.largest(), agreement.rms(), limits.largest, limits.rms);
  }
  report.verdict = !holds || was_wrong ? CallVerdict::differs : CallVerdict::agrees;
}

}  // namespace mulligan::first_contact
