// The instructions that NVRTC's output uses, with all modifiers: opcodes.inc lists them, so that a new one is noticed.
#pragma once

#include "tests/ptx/program.h"

namespace mulligan::ptx {

// Throws std::runtime_error naming function and instruction where the list misses one of `program`.
void require_listed(const Program& program);

}  // namespace mulligan::ptx
