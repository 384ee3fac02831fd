// The source that the program was built from.
#pragma once

#include <string>

namespace mulligan {

// source_digest() (framework/artifact/code_size.h) of the tree that this program was built from.
std::string built_from();

}  // namespace mulligan
