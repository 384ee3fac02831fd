// On a GPU no kernel of the processor runs.
#include "optimizers/sgd/sgd_step.h"

namespace mulligan::optimizers {

void SgdStep::run(const sdk::Launch&) {}
void SgdUpdate::run(const sdk::Launch&) {}

}  // namespace mulligan::optimizers
