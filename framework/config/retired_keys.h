// Keys that older files have under another name.
#pragma once

#include <span>
#include <string>

#include "framework/config/config_tree.h"

namespace mulligan {

// Gives the keys of `tree`, a file with what it extends, their present names, so that an older file and an
// older artifact keep their meaning:
//   eval.batch_rows -> eval.packed_sequences   (it was called rows per pass, but always set the packing)
// Throws config_error where a file has both names, and for an old name in `overrides` (as of --set): whoever
// types it wants what it was called, not what it did.
void rename_retired_keys(ConfigNode& tree, std::span<const std::string> overrides);

}  // namespace mulligan
