// How far results lie from what was expected of them.
#pragma once

#include <cstdint>

#include "tests/first_contact/host_tensor.h"

namespace mulligan::first_contact {

// Most that two results may differ, relative to the expected numbers: the largest difference to the largest
// number, and the root mean square of all differences to that of all numbers.
struct Limits {
  double largest = 0, rms = 0;
};
// The limits of the kernel tests: 2e-5 where a call computes on f32 alone, 2e-2 where any argument has 16 bits;
// of the root mean square half of it. Integers must be equal.
Limits limits_of(bool narrow, const TensorType& type);

class Agreement {
 public:
  void add(double ours, double expected);

  double largest() const;
  double rms() const;
  std::int64_t elements() const { return elements_; }
  // Elements that are a number on one side only, or infinities of other signs.
  std::int64_t not_numbers() const { return not_numbers_; }
  bool holds(const Limits& limits) const {
    return not_numbers_ == 0 && largest() <= limits.largest && rms() <= limits.rms;
  }

 private:
  double most_difference_ = 0, most_expected_ = 0, squares_difference_ = 0, squares_expected_ = 0;
  std::int64_t elements_ = 0, not_numbers_ = 0;
};

// Every element of two tensors of one type.
Agreement compare_all(const HostTensor& ours, const HostTensor& expected);

}  // namespace mulligan::first_contact
