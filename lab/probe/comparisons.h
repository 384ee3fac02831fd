// Which computations of a probe are held against each other.
#pragma once

#include <string>
#include <vector>

#include "lab/probe/difference.h"
#include "lab/probe/measure.h"

namespace mulligan::probe {

struct Comparison {
  std::size_t measurement = 0;  // its index
  enum class Kind { batch, setting, precision } kind = Kind::batch;
  std::string what;  // "batch 8 to batch 1", "run.fused_kernels=false", "to fp32"
  LogitDifference logits;
  Divergence texts;
};

// Of each measurement: its batch sizes with its first; where it is of a setting, that with the measurement of
// the same precision without one, at the first batch size; else with that of the first precision. In the order
// of the measurements, of which the first has no setting and each precision one without.
std::vector<Comparison> comparisons(const std::vector<Measurement>& measurements);

}  // namespace mulligan::probe
