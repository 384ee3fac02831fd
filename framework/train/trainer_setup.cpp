// How a training run comes about: its plugins, data, programs and files.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/check/start_check.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/run/device_plan.h"
#include "framework/run/strict_rules.h"
#include "framework/run/training_data.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

void require_trainable(const RunConfig& config, const Backend& backend) {
  require_computing(backend, "nothing would be trained; use --dry-run");
  if (config.data.train.empty() && config.data.mix.empty()) {
    throw data_error(
        "data.train is not set; name the training shards, for example data/fineweb_train_*.bin.");
  }
}

// What a device makes for rows of any length is made before the clock starts, not when the first such row comes.
void expect_segments(TrainingDevice& device, const std::vector<Phase>& phases) {
  TrainingEngine& engine = device.programs->engine();
  std::int64_t longest = 0;
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (engine.plan().has(phase)) longest = std::max(longest, phases[phase].sequence_length);
  }
  engine.expect_segments(longest);
  device.plugins.backend->synchronize();
}

// Makes every program, takes the memory and gives the weights their initial values; nothing allocates on the step
// path afterwards. The memory of all devices.
DeviceMemory prepare_devices(PhaseDevices& devices, const std::vector<Phase>& phases,
                             const MakeCommunicator& make_communicator,
                             std::optional<int> validation_bos_id) {
  devices.compile(make_communicator, validation_bos_id);
  DeviceMemory memory;
  for (const auto& device : devices.devices()) {
    const DeviceMemory needed = device->programs->memory();
    require_memory(needed, *device->plugins.backend, "the run",
                   "raise train.micro_batches, or make the model smaller");
    memory.tensors_bytes += needed.tensors_bytes;
    memory.arena_bytes += needed.arena_bytes;
    memory.workspace_bytes += needed.workspace_bytes;
  }
  devices.initialise();
  for (const auto& device : devices.devices()) expect_segments(*device, phases);
  return memory;
}

// Asks the schedules for rates from the first to the last step: a number that ends the run is found before it begins.
void check_schedules(TrainingDevice& device, const RunConfig& config) {
  constexpr int points = 64;
  const auto ask = [&](std::int64_t total_steps) {
    for (int point = 0; point <= points; ++point) {
      const double share = static_cast<double>(point) / points;
      const auto steps = static_cast<double>(total_steps > 0 ? total_steps : points);
      device.groups.set_rates({std::llround(share * steps), total_steps, share, share});
      static_cast<void>(device.programs->engine().coming_micro_batches());
    }
  };
  ask(horizon_steps(config));
  const std::vector<Phase>& phases = config.phases;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::int64_t end = i + 1 < phases.size() ? phases[i].until.steps : config.train.steps;
    if (phases[i].lr_policy == LrPolicy::independent)
      ask(end > 0 ? std::max<std::int64_t>(end - begin, 1) : 0);
    if (end > 0) begin = end;
  }
}

}  // namespace

Trainer::Trainer(const LoadedConfig& loaded, PluginHost& host, RunRanks& ranks, const TrainOptions& options,
                 ResumePoint resume, MakeCommunicator make_communicator)
    : loaded_(loaded),
      config_(loaded.config),
      host_(host),
      ranks_(ranks),
      clock_(config_, options.clock),
      outputs_(config_, options),
      parameters_(plan_parameters(config_)),
      devices_(loaded, host, parameters_),
      made_(backends()),
      rows_(config_, ranks.group().rank(), ranks.group().world_size()),
      phases_(config_, devices_, rows_, outputs_),
      losses_(config_.train.log_every),
      writer_(config_.checkpoint.directory, config_.checkpoint.keep) {
  result_.start = {ranks_.group().world_size(), ranks_.nodes(), ranks_.environment().launcher,
                   ranks_.environment().restart_count};
  begin_log(resume, !options.resume.empty());
  for (const auto& device : devices_.devices()) {
    check_loss_at_start(*device->plugins.backend, *device->plugins.loss, config_.model,
                        config_.phases.front().compute_dtype);
  }
  open_data();
  compile(std::move(make_communicator));
  check_schedules(phases_.device(), config_);
  if (resume.checkpoint) resume_from(*resume.checkpoint);
  for (const MakeObserver& make : options.observers) observers_.push_back(make());
  for (const auto& observer : observers_) observer->before_first_step(observed());
  begin_files(resume);
}

void Trainer::begin_log(const ResumePoint& resume, bool resumed) {
  RunLog& log = outputs_.log();
  if (!ranks_.alone()) log.line(describe(ranks_.environment()));
  for (const auto& device : devices_.devices()) require_trainable(config_, *device->plugins.backend);
  if (ranks_.first()) outputs_.require_place(resume, resumed);
  log.detail(print_resolved(loaded_));
  log.print("configuration {}; each key with its origin: {}", loaded_.file,
            outputs_.files().config().string());
  for (const std::string& note : resume.notes) log.line(note);
  result_.directory = outputs_.files().directory;
  result_.parameters = parameter_count(model_parameters(config_.model));
  log.print("{} parameters, on {}", result_.parameters, devices_.backend().info().description);
  if (!config_.init.from.empty()) log.print("weights at the start: {}", config_.init.from);
}

void Trainer::open_data() {
  RunLog& log = outputs_.log();
  if (!config_.data.validation.empty()) {
    validation_ = std::make_unique<ValidationSet>(
        load_validation(config_.data, config_.model.vocabulary, config_.eval.tokens));
    require_strict_validation(config_, *validation_);
    log.print("validation: {} tokens", validation_->tokens.size());
    if (!validation_->byte_note.empty()) log.line(validation_->byte_note);
  }
  rows_.open(validation_.get());
  const TrainingData& data = rows_.data();
  for (const std::string& note : data.notes) log.line(note);
  ranks_.require_same_data(data.data);
  require_documents(config_, data, validation_.get());
  require_arena(config_, data.data, ranks_.group().world_size());
  if (validation_) {
    const auto patience = ranks_.patience();
    overlap_ = overlap_with_validation(config_, data.shards, *validation_, ranks_.group(), log);
  }
  rows_.read_as(phases_.phase());
  rows_.require_enough();
  const Loader& loader = rows_.stream().loader();
  log.print("training: {} shards, {} tokens per pass", data.shards.size(),
            loader.spans_per_epoch() * loader.options().row_tokens);
}

void Trainer::compile(MakeCommunicator make_communicator) {
  clock_.ledger().enter("compile");
  if (!make_communicator) make_communicator = [](Backend&) { return make_self_communicator(); };
  const DeviceMemory memory =
      prepare_devices(devices_, config_.phases, make_communicator,
                      validation_ ? std::optional(validation_->segment_start()) : std::nullopt);
  outputs_.log().print("device memory: {:.1f} MB of tensors, {:.1f} MB of working memory",
                       static_cast<double>(memory.tensors_bytes) / 1e6,
                       static_cast<double>(memory.arena_bytes + memory.workspace_bytes) / 1e6);
}

// All that can be refused has been checked, so an earlier run may go, or this one's files go on.
void Trainer::begin_files(const ResumePoint& resume) {
  if (ranks_.first()) {
    outputs_.begin(resume, print_resolved(loaded_));
    record_memory();
    tell_start(resume);
  }
  ranks_.group().barrier();  // an earlier run has been set aside
  if (!ranks_.first()) outputs_.begin_on_rank(ranks_.group().rank(), resume.in_place);
}

void Trainer::record_memory() {
  TrainingPrograms& programs = *phases_.device().programs;
  const TensorStore& store = phases_.engine().store();
  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : store.names()) tensors[name] = store.reserved_bytes(name);
  MemoryRecord record;
  for (const MemoryRow& row : memory_by_category(tensors))
    record.tensors_bytes.emplace_back(row.what, row.bytes);
  for (const Program* program : programs.programs()) {
    record.programs_bytes.emplace_back(program->name(), program->arena_bytes());
  }
  const DeviceMemory memory = programs.memory();
  record.arena_bytes = memory.arena_bytes + memory.workspace_bytes;
  outputs_.metrics().memory(record);
}

void Trainer::tell_start(const ResumePoint& resume) {
  const RunStart& start = result_.start;
  if (start.ranks > 1 || start.restarts > 0) {
    outputs_.metrics().attempt(trained_.steps, start);
  }
  if (start.restarts > 0) {
    outputs_.log().print(
        "warning: the run was restarted {} time{} after a failure; seconds after the last checkpoint before it "
        "are not booked",
        start.restarts, start.restarts == 1 ? "" : "s");
  }
  if (resume.checkpoint) outputs_.metrics().resume(trained_.steps, resume.checkpoint->path.string());
  if (!resume.in_place) return;
  for (const auto& path : set_aside_later_checkpoints(config_.checkpoint.directory, trained_.steps)) {
    outputs_.log().print("warning: a checkpoint of a later step was set aside: {}", path.string());
  }
}

}  // namespace mulligan
