// The parameter table: which optimiser, multipliers, master dtype and communication each parameter gets.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "framework/config/train_config.h"
#include "framework/config/value.h"
#include "framework/config/words.h"

namespace mulligan {

// replicated: every rank updates the whole parameter. sharded: each rank updates its slice along the first
// axis (reduce-scatter before, all-gather after the update). owner: one rank updates the whole parameter
// (reduce before, broadcast after the update) and alone keeps the optimiser's states of it.
enum class Communication { replicated, sharded, owner };
template <>
inline constexpr auto config_words<Communication> = std::array{"replicated", "sharded", "owner"};

// What a row says in the place of an optimiser's name where nothing updates its parameters: they keep their
// initial values, and no gradient of them is computed.
inline constexpr const char* no_optimizer = "none";

// One row of [[parameters]].
struct ParameterRow {
  // glob over the whole parameter name: * any run of characters (dots too), ? one, [abc] a set
  std::string match;
  std::string optimizer;  // NAME of [optimizer.NAME], or no_optimizer
  double lr_multiplier = 1.0;
  double weight_decay_multiplier = 1.0;
  Precision master_dtype = Precision::fp32;  // dtype in which the weights are kept and updated
  Communication communication = Communication::replicated;
  Precision communication_dtype = Precision::fp32;  // dtype in which gradients travel between ranks
  Origin origin;                                    // of the row
};

// For each name the index of the first row that matches it. Throws config_error when a row takes no parameter
// (it matches none, or earlier rows took all it matches) and when a parameter is taken by no row.
std::vector<size_t> resolve_parameter_table(std::span<const std::string> names,
                                            std::span<const ParameterRow> rows);

}  // namespace mulligan
