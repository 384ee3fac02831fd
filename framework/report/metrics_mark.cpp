#include "framework/report/metrics_mark.h"

#include "framework/core/sha256.h"

namespace mulligan {

void MetricsMark::add(std::string_view line) {
  Sha256 hash;
  hash.update(std::string_view(sha256));
  hash.update(line);
  sha256 = hash.hex();
  ++records;
}

}  // namespace mulligan
