// How far results lie from what was expected of them, and what is said of one call on a device against a reference.
#pragma once

#include <mulligan/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "framework/core/tensor_type.h"

namespace mulligan::first_contact {

// A tensor's bytes on the host, read as numbers.
struct HostTensor {
  TensorType type;
  const std::byte* bytes = nullptr;

  double operator[](std::int64_t index) const {
    switch (type.dtype) {
      case MLG_F32:
        return at<float>(index);
      case MLG_BF16:
        return static_cast<float>(at<sdk::bfloat16>(index));
      case MLG_F16:
        return static_cast<float>(at<sdk::float16>(index));
      case MLG_F64:
        return at<double>(index);
      case MLG_I32:
        return at<std::int32_t>(index);
      case MLG_I64:
        return static_cast<double>(at<std::int64_t>(index));
      case MLG_U16:
        return at<std::uint16_t>(index);
      case MLG_U8:
        return at<std::uint8_t>(index);
      case MLG_I8:
        return at<std::int8_t>(index);
      default:
        return 0;
    }
  }
  bool is_floating() const { return type.dtype >= MLG_F32 && type.dtype <= MLG_F64; }

 private:
  template <typename T>
  T at(std::int64_t index) const {
    T value;
    std::memcpy(&value, bytes + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
};

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

enum class CallVerdict {
  agrees,
  differs,
  failed,        // the device refused or stopped it
  not_compared,  // it ran, and there was no reference or no time for one
  taken_over     // the reference computed it in the device's place
};
const char* verdict_name(CallVerdict verdict);

struct CallReport {
  CallVerdict verdict = CallVerdict::not_compared;
  std::string reference;  // "fp64, 576 elements", "cpu backend, every element"
  std::string argument;   // the one that lies furthest from what was expected
  double largest = 0, rms = 0;
  Limits limits;
  std::string sentence;  // what is wrong, or why nothing was compared
  bool stopped = false;  // the device takes no more calls
  double seconds = 0;    // of the call on the device, from start to end, its set-up included
};

// Holds one argument's agreement against its limits; the report keeps the argument that is furthest beyond its limits,
// or where all hold the one that is nearest to them.
void judge(CallReport& report, const std::string& reference, const std::string& name,
           const Agreement& agreement, const Limits& limits);

}  // namespace mulligan::first_contact
