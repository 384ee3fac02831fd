#include "tests/first_contact/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mulligan::first_contact {
namespace {

double ratio(double difference, double expected) {
  if (difference == 0) return 0;
  return expected > 0 ? difference / expected : std::numeric_limits<double>::infinity();
}

// How much of the limits is used; beyond 1 they do not hold. Where they are 0, any difference is beyond.
double used(double largest, double rms, const Limits& limits) {
  const auto share = [](double value, double limit) {
    return value == 0 ? 0 : limit > 0 ? value / limit : 1e300;
  };
  return std::max(share(largest, limits.largest), share(rms, limits.rms));
}

}  // namespace

Limits limits_of(bool narrow, const TensorType& type) {
  if (!HostTensor{type, nullptr}.is_floating()) return {};
  return narrow ? Limits{2e-2, 1e-2} : Limits{2e-5, 1e-5};
}

void Agreement::add(double ours, double expected) {
  ++elements_;
  if (!std::isfinite(ours) || !std::isfinite(expected)) {
    const bool same = std::isnan(ours) ? std::isnan(expected) : ours == expected;
    if (!same) ++not_numbers_;
    return;
  }
  const double difference = std::abs(ours - expected);
  most_difference_ = std::max(most_difference_, difference);
  most_expected_ = std::max(most_expected_, std::abs(expected));
  squares_difference_ += difference * difference;
  squares_expected_ += expected * expected;
}

double Agreement::largest() const {
  return ratio(most_difference_, most_expected_);
}

double Agreement::rms() const {
  return std::sqrt(ratio(squares_difference_, squares_expected_));
}

Agreement compare_all(const HostTensor& ours, const HostTensor& expected) {
  Agreement agreement;
  for (std::int64_t i = 0; i < ours.type.elements(); ++i) agreement.add(ours[i], expected[i]);
  return agreement;
}

const char* verdict_name(CallVerdict verdict) {
  constexpr const char* names[] = {"agrees", "differs", "failed", "not compared", "taken over"};
  return names[static_cast<std::size_t>(verdict)];
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
