// Keys that other trainers have and this one calls otherwise.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// What to write in the place of `key`, a full name such as "train.learning_rate", as the end of a sentence; "" where
// its last part is no word of others.
std::string hint_for_foreign_key(std::string_view key);

}  // namespace mulligan
