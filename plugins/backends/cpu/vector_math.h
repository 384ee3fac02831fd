// The SDK's vectorisable elementary functions under the backend's namespace.
#pragma once

#include <mulligan/vector_math.hpp>

namespace mulligan::cpu {

using sdk::fast_exp;
using sdk::fast_exp_nonpositive;
using sdk::fast_sigmoid;
using sdk::fast_tanh;

}  // namespace mulligan::cpu
