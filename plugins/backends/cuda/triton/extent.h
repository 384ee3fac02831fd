// Numbers that follow from the shape of a kernel's arguments: "logits.shape[1]", "x.size", "x.size / 1024".
#pragma once

#include <mulligan/kernel.h>

#include <cstdint>
#include <string>

#include "plugins/backends/common/kernel_signature.h"

namespace mulligan::cuda::triton {

class Extent {
 public:
  // ARGUMENT.shape[AXIS] or ARGUMENT.size (the number of elements), divided by a whole number and rounded up
  // where one follows; or a number. Throws std::runtime_error, naming `file`, for anything else and for an argument
  // that the signature does not have.
  Extent(const std::string& text, const backends::Signature& signature, const std::string& file);

  const std::string& text() const { return text_; }
  // 0 where the argument is absent.
  std::int64_t of(const mlg_launch& call) const;

 private:
  std::string text_;
  std::int64_t number_ = -1;  // >= 0: fixed
  std::uint32_t argument_ = 0;
  int axis_ = -1;  // -1: size
  std::int64_t divisor_ = 1;
};

}  // namespace mulligan::cuda::triton
