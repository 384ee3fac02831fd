// What a quantiser chooses over the whole model, checked before the artifact takes it.
#pragma once

#include <mulligan/quantizer.h>

#include <span>
#include <vector>

#include "framework/artifact/quantize.h"

namespace mulligan {

class Quantizer;

// By tensor of the list: its protected columns without codes and scales. Throws run_error where the quantiser
// fails or chooses columns that are not there, overlap, or have a width that codes cannot have.
std::vector<ProtectedColumns> chosen_columns(const Quantizer& quantizer,
                                             std::span<const mlg_quantize_tensor> tensors);

// By tensor of the list: its correction, rank 0 where there is none. Throws run_error where the quantiser
// fails or returns one that does not fit its tensor or has scales that fp16 does not hold.
std::vector<LowRankCorrection> chosen_corrections(const Quantizer& quantizer,
                                                  std::span<const mlg_quantize_tensor> tensors);

}  // namespace mulligan
