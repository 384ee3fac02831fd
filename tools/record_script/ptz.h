// The record script's artifact, final_model.int6.ptz of openai/parameter-golf: a file of torch.save with the tables
// "w" (codes, scales, plain tensors) and "m" (how each tensor is stored), behind Brotli.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/artifact/quantize.h"

namespace mulligan::record_script {

// The tensors in the order of their names, dequantised as the script does (bit for bit, low-rank corrections to
// rounding). Read are the files of the scripts of pull requests 1886 and 2014 with COMPRESSOR=brotli: with and
// without byte shuffle, int8 rows, protected columns, both forms of low-rank correction. Throws data_error for
// anything else, naming `origin`; nothing that the file names is executed (torch_file.h).
std::vector<QuantizedTensor> parse_ptz(std::string_view bytes, const std::string& origin);

// What deserialize() of both scripts reads as these tensors. Throws config_error for a correction whose scales the
// scripts have no form for.
std::string serialize_ptz(const std::vector<QuantizedTensor>& tensors);

}  // namespace mulligan::record_script
