// The [quantize] section and its [[quantize.tensors]] rows: how trained weights become an artifact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/plugin_config.h"
#include "framework/config/stored_formats.h"
#include "framework/config/value.h"

namespace mulligan {

// One row of [[quantize.tensors]]; the first row that matches a tensor's name takes it.
struct QuantizeTensorRow {
  std::string match;  // glob over the whole tensor name, for example "blocks.*.attn.*"
  TensorFormat format = TensorFormat::integer;
  int64_t bits = 6;            // format int only
  double clip_sigmas = 12.85;  // format int only: scale = clip_sigmas * std(row) / qmax
  Origin origin;
  double clip_quantile = 1, least_range = 0;  // format int8_row only; between neighbours a quantile is linear
};

// What the host itself reads in [quantize].
struct QuantizeOptions {
  int64_t calibration_batches = 16;
  int64_t calibration_rows = 16;         // rows of train.sequence_length tokens per batch
  int64_t calibration_shard_stride = 1;  // every so many-th training shard, from the first
  Compression compression = Compression::brotli;
  CodeStreams streams = CodeStreams::width;
};

// [quantize]
struct QuantizeConfig {
  QuantizeOptions options;
  PluginTable table;  // the quantiser plugin, section "quantize"
  std::vector<QuantizeTensorRow> tensors;
};

}  // namespace mulligan
