// Keys that older programs meant otherwise.
#pragma once

#include <string>

#include "framework/config/config_tree.h"

namespace mulligan {

// Gives the keys of `tree`, a configuration that a program saved (of a run, a checkpoint or an artifact),
// their present names. eval.batch_rows was called rows per forward pass, but set the packing: where there is
// no eval.packed_sequences, it becomes that.
void rename_retired_keys(ConfigNode& tree);

// What a user should know whose own file sets eval.batch_rows and leaves out eval.packed_sequences; else "".
std::string retired_keys_note(const ConfigNode& tree);

}  // namespace mulligan
