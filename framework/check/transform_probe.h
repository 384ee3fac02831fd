// The causality probe of score transforms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "framework/plugin/transform.h"

namespace mulligan {

bool same_biases(std::span<const mlg_bias> a, std::span<const mlg_bias> b);

// Requests proposals for a text that repeats itself, for the same text again, and for texts that differ from it from some token on, in the
// order of scoring. Returns a sentence about the fault, or empty. Faults are proposals that know their own or a later token, or remember an
// earlier stream. `ahead`: so many tokens are told before the proposals for them, which is a fault that tests make.
std::string transform_problem(const Transform& transform, std::int64_t vocabulary, std::size_t ahead = 0);

}  // namespace mulligan
