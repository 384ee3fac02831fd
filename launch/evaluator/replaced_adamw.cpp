// On cuda, an evaluation runs no kernel on the CPU.
#include "optimizers/adamw/adamw_step.h"

namespace mulligan::optimizers {

void AdamwUpdate::run(const sdk::Launch&) {}
void AdamwStochasticUpdate::run(const sdk::Launch&) {}

}  // namespace mulligan::optimizers
