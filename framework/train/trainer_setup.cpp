// How a training run comes about: its plugins, data, programs and files.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/check/start_check.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/shard.h"
#include "framework/run/clock_check.h"
#include "framework/run/strict_validation.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

constexpr std::int64_t loss_ring_steps = 100;  // single losses kept for means over the last steps

// The file anew, or that of the run that goes on, of which its checkpoint knows what it must hold.
MetricsFile open_metrics(const std::filesystem::path& path, const ResumePoint& resume) {
  if (!resume.in_place) return MetricsFile(path);
  const CheckpointManifest& m = resume.checkpoint->manifest;
  return MetricsFile(path, m.step, {m.progress.metrics_records, m.progress.metrics_sha256});
}

void require_trainable(const RunConfig& config, const Backend& backend) {
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing would be trained; use --dry-run.",
                       backend.plugin().description());
  }
  if (config.data.train.empty() && config.data.mix.empty()) {
    throw data_error(
        "data.train is not set; name the training shards, for example data/fineweb_train_*.bin.");
  }
}

}  // namespace

Trainer::Trainer(const LoadedConfig& loaded, PluginHost& host, RunRanks& ranks, const TrainOptions& options,
                 ResumePoint resume, MakeCommunicator make_communicator)
    : loaded_(loaded),
      config_(loaded.config),
      host_(host),
      ranks_(ranks),
      make_communicator_(std::move(make_communicator)),
      budget_(config_.train, options.clock ? options.clock : steady_seconds),
      files_((ledger_.enter("setup"), RunFiles{config_.run.directory})),
      log_(options, {}),
      parameters_(plan_parameters(config_)),
      phases_(loaded, host, parameters_),
      device_(&phases_.device()),
      checkpoints_(config_.checkpoint.directory, config_.checkpoint.keep),
      account_(static_cast<std::size_t>(std::max<std::int64_t>(loss_ring_steps, config_.train.log_every))),
      collect_every_step_(phases_.backend().info().threads > 0),
      cycles_(config_.optimizers.size(), 0),
      loss_scaler_(config_.loss_scale) {
  log_.keep_lines();
  if (!make_communicator_) {
    make_communicator_ = [](Backend&) { return make_self_communicator(); };
  }
  if (!ranks_.alone()) log_.line(describe(ranks_.environment()));
  result_.start = {ranks_.group().world_size(), ranks_.nodes(), ranks_.environment().launcher,
                   ranks_.environment().restart_count};
  for (const auto& device : phases_.devices()) require_trainable(config_, *device->plugins.backend);
  if (ranks_.first()) require_place(resume, !options.resume.empty());
  log_.detail(print_resolved(loaded_));
  log_.line(config_summary(loaded_));
  log_.print("  each key with its origin: {} (and mulligan config print)", files_.config().string());
  for (const std::string& note : resume.notes) log_.line(note);
  result_.directory = files_.directory;
  result_.parameters = parameter_count(model_parameters(config_.model));
  log_.print("{} parameters, on {}", result_.parameters, phases_.backend().info().description);
  if (!config_.init.from.empty()) log_.print("weights at the start: {}", config_.init.from);
  for (const auto& device : phases_.devices()) {
    check_loss_at_start(*device->plugins.backend, *device->plugins.loss, config_.model,
                        to_dtype(config_.phases.front().compute_dtype));
  }
  open_data();
  compile();
  check_schedules();
  if (resume.checkpoint) resume_from(*resume.checkpoint);
  for (const MakeObserver& make : options.observers) observers_.push_back(make());
  for (const auto& observer : observers_) {
    ObservedRun run = observed();
    observer->before_first_step(run);
  }
  begin_files(resume);
}

Trainer::~Trainer() {
  if (!replaced_) return;
  try {
    checkpoints_.finish();
  } catch (const Error&) {  // the error that ends this run was reported
  }
  try {
    const std::string back = replaced_->recover();
    if (!back.empty()) log_.line(back);
  } catch (const Error& error) {
    log_.print("warning: the run that was to be replaced is still set aside: {}", error.what());
  }
}

// The run directory is the first rank's.
void Trainer::require_place(const ResumePoint& resume, bool resumed) const {
  if (resume.replaces) {
    ReplacedRun(files_.directory, config_.checkpoint.directory).require_only_a_run();
  } else if (!resume.in_place) {
    require_fresh_directory(config_, resumed);
  }
}

void Trainer::begin_files(const ResumePoint& resume) {
  if (ranks_.first()) begin_first_ranks_files(resume);
  ranks_.group().barrier();  // an earlier run has been set aside
  if (ranks_.first()) return;
  std::error_code refused;  // which opening the log then says
  std::filesystem::create_directories(files_.ranks(), refused);
  log_.open_file(files_.ranks() / fmt::format("{:04}.log", ranks_.group().rank()), resume.in_place);
  metrics_.emplace();
}

// All that can be refused has been checked, so an earlier run may go, or this one's files go on.
void Trainer::begin_first_ranks_files(const ResumePoint& resume) {
  if (!resume.in_place) {
    const ReplacedRun earlier(files_.directory, config_.checkpoint.directory);
    if (earlier.worth_keeping()) {
      earlier.set_aside();
      replaced_ = earlier;
    } else {
      remove_unfinished_run(files_.directory);
    }
  }
  try {
    note_attempt(files_.directory, resume.attempt);
    write_file_atomically(files_.config(), print_resolved(loaded_));
    log_.open_file(files_.log(), resume.in_place);
    metrics_.emplace(open_metrics(files_.metrics(), resume));
    if (config_.metrics.tensorboard) metrics_->mirror_to(files_.tensorboard());
    if (!metrics_->gap().empty()) log_.print("warning: {}", metrics_->gap());
  } catch (const Error&) {  // a constructor that throws has no destructor
    if (replaced_) replaced_->recover();
    throw;
  }
  record_memory(device_->programs->memory());
  const RunStart& start = result_.start;
  if (start.ranks > 1 || start.restarts > 0) {
    metrics_->attempt({step_, start.ranks, start.nodes, start.launcher, start.restarts});
  }
  if (start.restarts > 0) {
    log_.print("warning: the run was restarted {} time{} after a failure, so it is no record", start.restarts,
               start.restarts == 1 ? "" : "s");
  }
  if (resume.checkpoint) metrics_->resume(step_, resume.checkpoint->path.string());
  if (!resume.in_place) return;
  for (const auto& path : set_aside_later_checkpoints(config_.checkpoint.directory, step_)) {
    log_.print("warning: a checkpoint of a later step was set aside: {}", path.string());
  }
}

void Trainer::open_data() {
  say_preloaded(config_.ledger, log_);
  if (!config_.data.validation.empty()) {
    validation_ = std::make_unique<ValidationSet>(load_validation(config_.data, config_.model.vocabulary));
    require_strict_validation(config_, *validation_);
    log_.print("validation: {} tokens", validation_->tokens.size());
    if (!validation_->byte_note.empty()) log_.line(validation_->byte_note);
  }
  data_ = open_training_data(config_, validation_.get());
  for (const std::string& note : data_.notes) log_.line(note);
  ranks_.require_same_data(data_.data);
  if (validation_ && ranks_.first()) {
    const auto patience = ranks_.patience();
    overlap_ = overlap_with_validation(config_, data_.shards, *validation_, log_);
  }
  read_rows(phases_.phase());
  log_.print("training: {} shards, {} tokens per pass", data_.shards.size(),
             rows_->loader().spans_per_epoch() * rows_->loader().options().row_tokens);
}

// Rows as the phase reads them from now on; the stream goes on where it stands. Where the mix changes, its
// ratio is that of the new weights from here on.
void Trainer::read_rows(const Phase& phase) {
  LoaderOptions options = loader_options(config_, data_, ranks_.group().rank(), ranks_.group().world_size());
  options.max_segment_tokens = phase.sequence_length;
  bool same_weights = true;
  for (std::size_t i = 0; i < options.parts.size(); ++i) {
    options.parts[i].weight = phase.mix_weights[i];
    same_weights = same_weights && rows_ && rows_->loader().options().parts[i].weight == phase.mix_weights[i];
  }
  if (rows_ && same_weights && rows_->loader().options().max_segment_tokens == phase.sequence_length) return;
  require_read_files();
  auto rows = std::make_unique<Prefetcher>(std::make_unique<Loader>(options),
                                           static_cast<std::size_t>(config_.data.prefetch));
  if (rows_) {
    LoaderPosition position = rows_->position();
    for (PartPosition& part : position.parts) part.counted = same_weights ? part.counted : 0;
    rows->restore(position);
  }
  rows_ = std::move(rows);
}

void Trainer::compile() {
  ledger_.enter("compile");
  phases_.compile(make_communicator_, validation_ ? std::optional<int>(validation_->bos_id) : std::nullopt);
  DeviceMemory memory;
  for (const auto& device : phases_.devices()) {
    const DeviceMemory needed = device->programs->memory();
    require_memory(needed, *device->plugins.backend);
    memory.tensors_bytes += needed.tensors_bytes;
    memory.arena_bytes += needed.arena_bytes;
    memory.workspace_bytes += needed.workspace_bytes;
  }
  phases_.initialise();
  expect_segments();
  engine_ = &phases_.engine();
  log_.print("device memory: {:.1f} MB of tensors, {:.1f} MB of working memory",
             static_cast<double>(memory.tensors_bytes) / 1e6,
             static_cast<double>(memory.arena_bytes + memory.workspace_bytes) / 1e6);
}

// What a device makes for the rows that may come is made before the clock starts, not when the first such row
// comes.
void Trainer::expect_segments() {
  for (const auto& device : phases_.devices()) {
    TrainingEngine& engine = device->programs->engine();
    std::int64_t longest = 0;
    for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
      if (engine.plan().has(phase)) longest = std::max(longest, config_.phases[phase].sequence_length);
    }
    engine.expect_segments(longest);
    device->plugins.backend->synchronize();
  }
}

// Asks the schedules for rates from the first to the last step: a number that ends the run is found
// before it begins.
void Trainer::check_schedules() {
  constexpr int points = 64;
  const auto ask = [&](std::int64_t total_steps) {
    for (int point = 0; point <= points; ++point) {
      const double share = static_cast<double>(point) / points;
      const auto steps = static_cast<double>(total_steps > 0 ? total_steps : points);
      device_->groups.set_rates({std::llround(share * steps), total_steps, share, share});
      static_cast<void>(engine_->coming_micro_batches());
    }
  };
  ask(config_.train.steps);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < config_.phases.size(); ++i) {
    const Phase& phase = config_.phases[i];
    const std::int64_t end = i + 1 < config_.phases.size() ? phase.until.steps : config_.train.steps;
    if (phase.lr_policy == LrPolicy::independent) ask(end > 0 ? std::max<std::int64_t>(end - begin, 1) : 0);
    if (end > 0) begin = end;
  }
}

}  // namespace mulligan
