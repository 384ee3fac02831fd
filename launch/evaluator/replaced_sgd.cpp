// On cuda, an evaluation runs no kernel on the CPU.
#include "optimizers/sgd/sgd_step.h"

namespace mulligan::optimizers {

void SgdUpdate::run(const sdk::Launch&) {}

}  // namespace mulligan::optimizers
