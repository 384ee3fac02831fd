// The two number formats a user may ask for by name: compute dtype of the model, master dtype of a parameter.
#pragma once

namespace mulligan {

enum class Precision { fp32, bf16 };

}  // namespace mulligan
