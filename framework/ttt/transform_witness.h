// TransformWitness: hears what a score transform was told and what it proposed.
#pragma once

#include <mulligan/transform.h>

#include <cstdint>
#include <span>

namespace mulligan {

class TransformWitness {
 public:
  virtual ~TransformWitness() = default;
  // The stream `number` begins anew.
  virtual void opened(std::int64_t number, const mlg_transform_text& text) = 0;
  virtual void began(std::int64_t number, std::int64_t place, std::int32_t token) = 0;
  // `proposal` was made for the coming token of `place`, which is then told.
  virtual void told(std::int64_t number, std::int64_t place, std::int32_t token,
                    std::span<const mlg_bias> proposal) = 0;
};

}  // namespace mulligan
