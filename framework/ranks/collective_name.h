// The names of collectives in tables and sentences.
#pragma once

#include "framework/ranks/communicator.h"

namespace mulligan {

// "all_reduce"; "no collective" for what is none.
const char* collective_name(Collective kind);

}  // namespace mulligan
