// Whole numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace mulligan {

std::string grouped(std::int64_t number);  // 16000000 as "16,000,000"

}  // namespace mulligan
