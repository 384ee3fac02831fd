// Shapes for kernels that work element by element.
#pragma once

#include "tests/kernels/operator_case.h"

namespace mulligan::kernel_test {

// Rank 1 to 4; the largest spans several blocks of work. {24, 104} and kMatrices[1] are a whole number of
// 16-byte accesses of any dtype, the others are not.
inline const Shape kShapes[] = {{1}, {17, 3}, {2, 5, 3, 7}, {24, 104}, {5003, 5}};
inline const Shape kMatrices[] = {{67, 129}, {68, 136}};

}  // namespace mulligan::kernel_test
