// First values of adapters.
#pragma once

#include <cstdint>
#include <span>

#include "framework/adapters/adapter_taps.h"

namespace mulligan {

class AdapterDraws {
 public:
  virtual ~AdapterDraws() = default;
  // Fills the uniform adapter `tensor` for draw event number `draw` of the run (from 0): each creation of a
  // set of adapters, and each new batch whose adapters are not kept, is one event.
  virtual void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const = 0;
};

// Philox numbers keyed by (seed, draw, name of the adapter), uniform in +-tensor.bound; element i of a tensor
// is the same for every number of documents.
class PhiloxDraws : public AdapterDraws {
 public:
  explicit PhiloxDraws(std::uint64_t seed) : seed_(seed) {}
  void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace mulligan
