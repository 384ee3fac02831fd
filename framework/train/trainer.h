// Trainer: one training run from a resolved configuration to its result. It conducts parts that do not know it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/core/error.h"
#include "framework/run/plan_cache_counts.h"
#include "framework/run/run_ranks.h"
#include "framework/train/loss_books.h"
#include "framework/train/phase_follower.h"
#include "framework/train/run_outputs.h"
#include "framework/train/train.h"
#include "framework/train/training_clock.h"
#include "framework/train/training_rows.h"

namespace mulligan {

class Trainer {
 public:
  // Opens the run directory, the data and the plugins, makes every program, and continues from `resume` where
  // that holds a checkpoint. `loaded` has its plugins resolved and must outlive this object. Throws Error.
  // Of several ranks all are made alike; the first has the run directory, the others write a log next to it.
  // Without `make_communicator` there must be one rank.
  Trainer(const LoadedConfig& loaded, PluginHost& host, RunRanks& ranks, const TrainOptions& options,
          ResumePoint resume, MakeCommunicator make_communicator = {});

  RunResult run();

 private:
  void warm_up();
  void warm_up(TrainingDevice& device, std::int64_t steps);
  void train_until_budget_is_spent();
  Decision decide();
  void choose_phase(const Decision& now);
  void make_step();
  void let_observers_look();
  void end_training(const Decision& last);
  std::vector<const Backend*> backends() const;  // of all phases
  void run_clock();                              // of the budget
  void stop_clock();
  ObservedRun observed();

  void collect_losses();
  void tell_first_loss();
  void report_steps(double budget_fraction);
  void show_progress(Progress& live);
  bool validation_due(double budget_fraction);  // after a step that began there
  void validate(const std::string& phase);      // of the ledger
  void save();
  const char* saved_weights_kind() const;  // "averaged", "evaluation" or "last"
  RunResult finish();
  void write_result(const std::vector<std::string>& broken, const nlohmann::ordered_json& made);

  // trainer_setup.cpp
  void begin_log(const ResumePoint& resume, bool resumed);
  void open_data();
  void compile(MakeCommunicator make_communicator);
  void begin_files(const ResumePoint& resume);
  void tell_start(const ResumePoint& resume);
  void record_memory();

  // trainer_checkpoint.cpp
  CheckpointManifest manifest() const;
  bool checkpoint_due();
  void begin_checkpoint();
  void note_checkpoint(const std::optional<std::filesystem::path>& written);
  void finish_checkpoint() { note_checkpoint(writer_.finish()); }
  // Whether the present state is in one, and one is complete.
  bool checkpoint_holds_all() const { return begun_steps_ == trained_.steps && !last_checkpoint_.empty(); }
  void require_equal_replicas();  // by all ranks
  void resume_from(const Checkpoint& checkpoint);
  void save_before_stopping();
  [[noreturn]] void stop_early(int signal);
  void stop_at_failure(const Error& error);
  [[noreturn]] void stop_at(const UnsoundStep& step);

  const LoadedConfig& loaded_;
  const RunConfig& config_;
  PluginHost& host_;
  RunRanks& ranks_;

  TrainingClock clock_;
  RunOutputs outputs_;
  std::vector<PlannedParameter> parameters_;
  PhaseDevices devices_;
  PlanCacheCounts made_;
  std::unique_ptr<ValidationSet> validation_;  // null: there is none
  std::int64_t shares_validated_ = 0;          // of train.validations
  std::optional<TextOverlap> overlap_;
  TrainingRows rows_;
  PhaseFollower phases_;
  LossBooks losses_;
  Trained reported_;                       // at the last report
  double reported_seconds_ = 0;            // training clock then
  CheckpointWriter writer_;                // is destroyed before outputs_, which asks what it has saved
  std::filesystem::path last_checkpoint_;  // complete; empty before the first
  std::int64_t begun_steps_ = 0;           // updates done when the last one was begun
  double begun_seconds_ = 0;               // training clock then
  std::vector<std::unique_ptr<TrainingObserver>> observers_;

  Trained trained_;
  // While a step is made: where the data stood, and the updates that the engine had begun before it.
  std::optional<LoaderPosition> step_start_;
  std::int64_t updates_ = 0;
  std::int64_t compared_step_ = 0;  // updates done when the ranks' masters were compared last
  std::string weights_sha256_;
  RunResult result_;
};

}  // namespace mulligan
