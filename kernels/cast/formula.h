#pragma once

#include "kernels/cast/signature.h"
#include "tools/doctor/formula_parts.h"

namespace mulligan::doctor {

const Formulas<shapes::Cast> cast([](const ReferenceCall& c, auto f) -> ReferenceResults {
  return {{f.y, c[f.x]}};
});

}  // namespace mulligan::doctor
