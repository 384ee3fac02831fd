// Numbers of a kernel's call: an attribute, what follows from the shape of an argument ("logits.shape[1]", "x.size",
// "x.size / 1024"), or a constant.
#pragma once

#include <mulligan/kernel.h>

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/backends/common/kernel_signature.h"

namespace mulligan::cuda::triton {

class CallNumber {
 public:
  // An attribute's name; digits; ARGUMENT.shape[AXIS] or ARGUMENT.size (the number of elements), divided by a whole
  // number and rounded up where one follows. Throws std::runtime_error, naming `file`, for anything else and for an
  // argument that the signature does not have.
  CallNumber(const std::string& text, const backends::Signature& signature, const std::string& file);

  const std::string& text() const { return text_; }
  // 0 where the argument is absent.
  double of(const mlg_launch& call) const;

 private:
  std::string text_;
  std::optional<double> constant_;
  std::optional<std::uint32_t> attribute_;
  std::uint32_t argument_ = 0;
  int axis_ = -1;  // -1: size
  std::int64_t divisor_ = 1;
};

}  // namespace mulligan::cuda::triton
