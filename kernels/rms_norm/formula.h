#pragma once

#include "kernels/rms_norm/signature.h"
#include "tools/doctor/formula_parts.h"

namespace mulligan::doctor {

const Formulas<shapes::RmsNormForward> rms_norm([](const ReferenceCall& c, auto f) -> ReferenceResults {
  return {{f.y, normed(c, c[f.x], c.dim(f.x, 1))}};
});

}  // namespace mulligan::doctor
