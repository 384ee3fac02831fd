// Trainer: one training run from a resolved configuration to its result.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/checkpoint/loss_account.h"
#include "framework/core/error.h"
#include "framework/report/metrics_file.h"
#include "framework/report/run_log.h"
#include "framework/run/data_overlap.h"
#include "framework/run/ledger.h"
#include "framework/run/replaced_run.h"
#include "framework/run/run_files.h"
#include "framework/run/run_ranks.h"
#include "framework/run/training_data.h"
#include "framework/step/loss_scaler.h"
#include "framework/step/phase_devices.h"
#include "framework/step/phase_progress.h"
#include "framework/step/rewarm.h"
#include "framework/step/snapshot.h"
#include "framework/step/step_pace.h"
#include "framework/train/first_steps.h"
#include "framework/train/resume.h"
#include "framework/train/train.h"
#include "framework/train/training_observer.h"

namespace mulligan {

class Trainer {
 public:
  // Opens the run directory, the data and the plugins, makes every program, and continues from `resume` where
  // that holds a checkpoint. `loaded` has its plugins resolved and must outlive this object. Throws Error.
  // Of several ranks all are made alike; the first has the run directory, the others write a log beside it.
  // Without `make_communicator` there must be one rank.
  Trainer(const LoadedConfig& loaded, PluginHost& host, RunRanks& ranks, const TrainOptions& options,
          ResumePoint resume, MakeCommunicator make_communicator = {});
  // Puts back the run that this one was to replace, unless something of this one has been saved.
  ~Trainer();

  RunResult run();

 private:
  void warm_up();
  void warm_up(TrainingDevice& device, const LoaderPosition& start);
  // What all ranks do next: rank 0 decides, and any rank may ask for a stop.
  struct Decision {
    double budget_fraction = 0;
    double elapsed_seconds = 0;  // of the training clock, when the coming step begins on the device
    bool end = false;            // the budget is spent
    bool checkpoint = false;     // one is due
    int stop_signal = 0;         // that some rank was sent
  };
  Decision decide();
  void train_until_budget_is_spent();
  void make_step();
  void note_ended(std::int64_t steps);
  void skip_update(double scale);
  void validate(const std::string& phase);
  void save();
  const char* saved_weights_kind() const;  // "averaged", "evaluation" or "last"

  mlg_progress progress(double budget_fraction) const;
  void set_rates(const Decision& now);
  void follow_schedules(const Decision& now);
  void choose_phase(const Decision& now);
  void begin_phase(std::size_t phase, const Decision& now);
  void skip_batches();
  void follow_phase();
  std::vector<std::pair<std::string, double>> rates() const;
  std::string counters() const;

  // trainer_strict.cpp: nothing may be learned while the training clock stands
  bool strict() const { return config_.ledger.rules == LedgerRules::strict; }
  std::vector<std::string> surviving_states(const OptimizerGroup& group);
  void require_warm_up_undone();
  void begin_first_steps();
  void note_first_step();
  void require_learned_steps() const;
  void require_read_files() const;
  // Whether the first steps are still to be judged: nothing is saved until then, or a run that goes on from a
  // checkpoint would begin with steps that nobody has seen.
  bool first_steps_open() const {
    return strict() && step_ <= static_cast<std::int64_t>(2 * FirstSteps::judged);
  }
  std::optional<StateSnapshot> state_before_validation();
  void require_unchanged(const std::optional<StateSnapshot>& state) const;

  // trainer_observers.cpp
  ObservedRun observed();
  void run_clock();  // of the budget
  void stop_clock();
  void let_observers_look();

  // trainer_setup.cpp
  void require_place(const ResumePoint& resume, bool resumed) const;
  void begin_files(const ResumePoint& resume);
  void begin_first_ranks_files(const ResumePoint& resume);
  void open_data();
  void compile();
  void expect_segments();
  void read_rows(const Phase& phase);
  void check_schedules();

  // trainer_report.cpp
  void record_memory(const DeviceMemory& memory);
  void tell_phase(double budget_fraction);
  void tell_switch(PhaseSwitchRecord record, const std::optional<Handover>& handover);

  void collect_losses();
  void check_initial_loss(double loss_nats);
  bool report_due() const;
  void report_steps(double budget_fraction);
  void show_progress(Progress& live);
  RunResult finish();

  // trainer_checkpoint.cpp
  CheckpointManifest manifest() const;
  void begin_checkpoint();
  void require_equal_masters();
  bool checkpoint_due();
  bool validation_due(double budget_fraction);
  void note_progress_saved();
  void note_checkpoint(const std::optional<std::filesystem::path>& written);
  void resume_from(const Checkpoint& checkpoint);
  void save_before_stopping();
  [[noreturn]] void stop_early(int signal);
  void stop_at_failure(const Error& error);
  [[noreturn]] void stop_at_non_finite(std::int64_t number, double loss_nats, double gradient_norm);
  void require_memory(const DeviceMemory& memory, const Backend& backend) const;

  const LoadedConfig& loaded_;
  const RunConfig& config_;
  PluginHost& host_;
  RunRanks& ranks_;
  MakeCommunicator make_communicator_;

  Ledger ledger_;
  Budget budget_;
  RunFiles files_;
  std::optional<ReplacedRun> replaced_;  // set aside; until this run has saved something
  RunLog log_;
  std::optional<MetricsFile> metrics_;  // of the first rank; the others keep nothing

  std::vector<PlannedParameter> parameters_;
  PhaseDevices phases_;
  TrainingDevice* device_ = nullptr;  // of the present phase
  TrainingEngine* engine_ = nullptr;  // of device_, once it is compiled
  std::unique_ptr<Prefetcher> rows_;
  std::unique_ptr<ValidationSet> validation_;
  std::optional<TextOverlap> overlap_;  // of the first rank
  TrainingData data_;

  CheckpointWriter checkpoints_;
  std::filesystem::path last_checkpoint_;  // complete; empty before the first
  std::int64_t checkpoint_step_ = 0;       // updates done when the last one was begun
  double checkpoint_at_ = 0;               // training clock then, seconds
  std::int64_t compared_step_ = 0;         // updates done when the ranks' masters were compared last

  StepPace pace_;
  LossAccount account_;
  bool collect_every_step_ = false;  // the device has finished a step when the call returns
  double gradient_norm_ = 0;         // of the last step collected

  std::int64_t step_ = 0;    // updates done
  std::int64_t tokens_ = 0;  // trained on, over all ranks
  std::int64_t reported_tokens_ = 0;
  struct StepMade {
    std::int64_t targets;  // losses
    bool updated;
  };
  std::deque<StepMade> uncollected_;          // each step from collected_ on
  std::optional<LoaderPosition> step_start_;  // where the data stood, while a step is made
  std::int64_t updates_ = 0;                  // that the engine had begun before it
  std::int64_t collected_ = 0;                // of which the losses are booked
  std::int64_t reported_ = 0;                 // of which reported
  double reported_at_ = 0;                    // training clock at the last report, seconds
  std::int64_t shares_validated_ = 0;         // of train.validations
  double slowest_step_seconds_ = 0;           // since the last report
  std::vector<std::int64_t> cycles_;          // of the groups' schedules
  PhaseStart phase_start_;
  // Steps made when the optimisers' states were emptied last, and those since then that made no update: the
  // optimisers count updates, for their bias corrections.
  std::int64_t optimizer_start_ = 0;
  LossScaler loss_scaler_;
  Rewarm rewarm_;  // of the last phase that has one
  std::string weights_sha256_;
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
  // By device, until the clock starts: what warm-up had to leave as it was.
  std::vector<std::unique_ptr<StateSnapshot>> before_warm_up_;
  std::optional<FirstSteps> first_steps_;  // under strict rules, of the first rank
  RunResult result_;
};

}  // namespace mulligan
