#include "tests/first_contact/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mulligan::first_contact {
namespace {

double ratio(double difference, double expected) {
  if (difference == 0) return 0;
  return expected > 0 ? difference / expected : std::numeric_limits<double>::infinity();
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

}  // namespace mulligan::first_contact
