// Completion scripts for shells.
#pragma once

#include <string>
#include <vector>

#include "launch/command_outline.h"

namespace mulligan {

// Scripts that complete commands, options, their values and, behind --set, `keys` of the configuration.
std::string bash_completion(const std::vector<CommandOutline>& commands,
                            const std::vector<std::string>& keys);
std::string zsh_completion(const std::vector<CommandOutline>& commands, const std::vector<std::string>& keys);

}  // namespace mulligan
