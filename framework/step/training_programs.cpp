#include "framework/step/training_programs.h"

#include "framework/run/run_plugins.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

TrainingPrograms::TrainingPrograms(const RunConfig& config, const std::string& section,
                                   const RunPlugins& plugins, const std::vector<PlannedParameter>& parameters,
                                   OptimizerGroups& groups, Communicator& communicator,
                                   std::optional<int> validation_bos_id)
    : engine_(config, section, plugins, parameters, groups, communicator, config.train.log_every),
      arena_(*plugins.backend) {
  if (!validation_bos_id) return;
  const bool averaged = scores_averages(config);
  EvaluatorOptions options;
  options.eval = config.eval;
  options.layer_order = scored_order(config.model);
  options.bos_id = *validation_bos_id;
  const std::vector<PlannedParameter> scored = with_compute_dtype(parameters, scored_types(config));
  evaluator_ = std::make_unique<Evaluator>(engine_.store(), config.model,
                                           scored_layouts(scored, groups, averaged), options);
  Graph copies = build_scored_copies(scored, groups, averaged);
  if (!copies.calls().empty())
    scored_copies_ = make_program(engine_.store(), std::move(copies), "copies of scored weights");
}

void TrainingPrograms::refresh_scored_weights() {
  engine_.refresh_scored_copies();
  engine_.refresh_evaluation_weights();
  engine_.gather_averages();
  if (scored_copies_) scored_copies_->run();
}

std::vector<Program*> TrainingPrograms::programs() {
  std::vector<Program*> programs = engine_.programs();
  if (evaluator_) programs.push_back(&evaluator_->program());
  if (scored_copies_) programs.push_back(scored_copies_.get());
  return programs;
}

}  // namespace mulligan
