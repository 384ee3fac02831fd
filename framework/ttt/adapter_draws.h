// First values of adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "framework/adapters/adapter_taps.h"
#include "framework/core/philox.h"

namespace mulligan {

// The first values of the uniform adapter `tensor` at draw event number `draw` of the run (from 0): each
// creation of a set of adapters, and each new batch whose adapters are not kept, is one event.
class AdapterDraws {
 public:
  virtual ~AdapterDraws() = default;
  // The stream from which they are drawn, uniform in +-tensor.bound, by whoever needs them; nothing: they are
  // asked of fill(), as fixtures want it.
  virtual std::optional<PhiloxStream> stream(std::int64_t, const AdapterTensor&) const { return {}; }
  virtual void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const = 0;
};

// Philox numbers keyed by (seed, draw, name of the adapter), uniform in +-tensor.bound; element i of a tensor
// is the same for every number of documents.
class PhiloxDraws : public AdapterDraws {
 public:
  explicit PhiloxDraws(std::uint64_t seed) : seed_(seed) {}
  std::optional<PhiloxStream> stream(std::int64_t draw, const AdapterTensor& tensor) const override;
  void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace mulligan
