#include "framework/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "framework/check/start_check.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/data/shard.h"
#include "framework/report/machine.h"
#include "framework/run/memory_categories.h"
#include "framework/run/run_ledger.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/snapshot.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

// The first step's loss of a sound model lies this close to that of the uniform distribution.
constexpr double initial_loss_tolerance_nats = 0.05;
constexpr std::int64_t loss_ring_steps = 100;  // single losses kept for means over the last steps

std::optional<std::int64_t> step_to_continue(const ResumePoint& resume) {
  if (!resume.in_place) return {};
  return resume.checkpoint->manifest.step;
}

void require_trainable(const RunConfig& config, const Backend& backend) {
  if (!backend.info().computes) {
    throw config_error("[backend]: {} computes nothing, so nothing would be trained; use --dry-run.",
                       backend.plugin().description());
  }
  if (config.data.train.empty()) {
    throw data_error(
        "data.train is not set; name the training shards, for example data/fineweb_train_*.bin.");
  }
}

std::string final_table(const RunResult& result) {
  std::string table = "\n";
  const auto row = [&](std::string_view what, const std::string& value) {
    table += fmt::format("{:<28} {}\n", what, value);
  };
  row("parameters", fmt::format("{}", result.parameters));
  row("steps", fmt::format("{}", result.steps));
  row("tokens", fmt::format("{}", result.tokens));
  row("tokens per second", fmt::format("{:.0f}", result.tokens_per_second));
  for (const auto& [phase, seconds] : result.seconds) row(phase + " seconds", fmt::format("{:.2f}", seconds));
  row("peak memory", fmt::format("{:.1f} MB", static_cast<double>(result.peak_memory_bytes) / 1e6));
  row("peak device memory",
      fmt::format("{:.1f} MB", static_cast<double>(result.peak_device_memory_bytes) / 1e6));
  row("training loss, first step", fmt::format("{:.4f} nats", result.initial_loss_nats));
  row("training loss, last step", fmt::format("{:.4f} nats", result.final_loss_nats));
  if (result.validation) {
    row("val_loss", fmt::format("{:.5f} nats", result.validation->val_loss_nats));
    if (result.validation->bytes > 0) row("val_bpb", fmt::format("{:.5f}", result.validation->val_bpb));
  }
  row("run directory", result.directory.string());
  return table;
}

}  // namespace

Trainer::Trainer(const LoadedConfig& loaded, PluginHost& host, RunRanks& ranks, const TrainOptions& options,
                 ResumePoint resume, MakeCommunicator make_communicator)
    : loaded_(loaded),
      config_(loaded.config),
      host_(host),
      ranks_(ranks),
      make_communicator_(std::move(make_communicator)),
      budget_(config_.train),
      files_((ledger_.enter("setup"), RunFiles{config_.run.directory})),
      log_(options, {}),
      parameters_(plan_parameters(config_)),
      phases_(loaded, host, parameters_),
      device_(&phases_.device()),
      checkpoints_(config_.checkpoint.directory, config_.checkpoint.keep),
      account_(static_cast<std::size_t>(std::max<std::int64_t>(loss_ring_steps, config_.train.log_every))),
      collect_every_step_(phases_.backend().info().threads > 0),
      cycles_(config_.optimizers.size(), 0) {
  log_.keep_lines();
  if (!make_communicator_) {
    make_communicator_ = [](Backend&) { return make_self_communicator(); };
  }
  if (!ranks_.alone()) log_.line(describe(ranks_.environment()));
  for (const auto& device : phases_.devices()) require_trainable(config_, *device->plugins.backend);
  if (!ranks_.first()) {
    // The run directory is the first rank's.
  } else if (options.overwrite) {
    ReplacedRun(files_.directory, config_.checkpoint.directory).require_only_a_run();
  } else if (!resume.in_place) {
    require_fresh_directory(config_, !options.resume.empty());
  }
  log_.line(print_resolved(loaded_));
  for (const std::string& note : resume.notes) log_.line(note);
  result_.directory = files_.directory;
  result_.parameters = parameter_count(model_parameters(config_.model));
  log_.print("{} parameters, on {}", result_.parameters, phases_.backend().info().description);
  for (const auto& device : phases_.devices()) {
    check_loss_at_start(*device->plugins.backend, *device->plugins.loss, config_.model,
                        to_dtype(config_.phases.front().compute_dtype));
  }
  open_data();
  compile();
  check_schedules();
  if (resume.checkpoint) resume_from(*resume.checkpoint);
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
    write_file_atomically(files_.config(), print_resolved(loaded_));
    log_.open_file(files_.log(), resume.in_place);
    metrics_.emplace(files_.metrics(), step_to_continue(resume));
  } catch (const Error&) {  // a constructor that throws has no destructor
    if (replaced_) replaced_->recover();
    throw;
  }
  record_memory(device_->programs->memory());
  if (resume.checkpoint) metrics_->resume(step_, resume.checkpoint->path.string());
  if (!resume.in_place) return;
  for (const auto& path : set_aside_later_checkpoints(config_.checkpoint.directory, step_)) {
    log_.print("warning: a checkpoint of a later step was set aside: {}", path.string());
  }
}

void Trainer::open_data() {
  if (!config_.data.validation.empty()) {
    validation_ = std::make_unique<ValidationSet>(load_validation(config_.data, config_.model.vocabulary));
    log_.print("validation: {} tokens", validation_->tokens.size());
  }
  data_ = open_training_data(config_, validation_.get());
  for (const std::string& note : data_.notes) log_.line(note);
  ranks_.require_same_data(data_.data.train.sha256);
  read_rows(phases_.phase().sequence_length);
  log_.print("training: {} shards, {} tokens per pass", data_.shards.size(),
             rows_->loader().spans_per_epoch() * rows_->loader().options().row_tokens);
}

// Segments of this length from now on; the stream goes on where it stands.
void Trainer::read_rows(std::int64_t sequence_length) {
  if (rows_ && rows_->loader().options().max_segment_tokens == sequence_length) return;
  LoaderOptions options = loader_options(config_, data_, ranks_.group().rank(), ranks_.group().world_size());
  options.max_segment_tokens = sequence_length;
  auto rows = std::make_unique<Prefetcher>(std::make_unique<Loader>(options),
                                           static_cast<std::size_t>(config_.data.prefetch));
  if (rows_) rows->restore(rows_->position());
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
  engine_ = &phases_.engine();
  log_.print("device memory: {:.1f} MB of tensors, {:.1f} MB of working memory",
             static_cast<double>(memory.tensors_bytes) / 1e6,
             static_cast<double>(memory.arena_bytes + memory.workspace_bytes) / 1e6);
}

// Asks the schedules for rates from the first to the last step: a number that ends the run is found
// before it begins.
void Trainer::check_schedules() {
  constexpr int points = 64;
  for (int point = 0; point <= points; ++point) {
    const double share = static_cast<double>(point) / points;
    const auto steps = static_cast<double>(config_.train.steps > 0 ? config_.train.steps : points);
    device_->groups.set_rates({std::llround(share * steps), config_.train.steps, share, share});
    static_cast<void>(engine_->coming_micro_batches());
  }
}

void Trainer::record_memory(const DeviceMemory& memory) {
  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : engine_->store().names()) {
    tensors[name] = engine_->store().type(name).bytes();
  }
  MemoryRecord record;
  for (const MemoryRow& row : memory_by_category(tensors))
    record.tensors_bytes.emplace_back(row.what, row.bytes);
  for (const Program* program : device_->programs->programs()) {
    record.programs_bytes.emplace_back(program->name(), program->arena_bytes());
  }
  record.arena_bytes = memory.arena_bytes + memory.workspace_bytes;
  metrics_->memory(record);
}

RunResult Trainer::run() {
  if (result_.resumed_from.empty()) {
    warm_up();
    if (config_.phases.size() > 1) tell_phase(0, {});
  }
  try {
    train_until_budget_is_spent();
  } catch (const Error& error) {
    stop_at_failure(error);
  } catch (const std::bad_alloc&) {
    stop_at_failure(run_error(
        "the machine has not enough memory for this run; make train.tokens_per_step or the model smaller."));
  }
  save();
  validate("evaluate");
  return finish();
}

// Steps of each phase before the clock starts: first touches of memory and caches are then no part of the budget.
// Everything that they changed returns to its initial value; so a run with and without warm-up is the same
// run.
void Trainer::warm_up() {
  if (config_.train.warmup.steps == 0) return;
  ledger_.enter("warmup");
  const LoaderPosition start = rows_->position();
  for (const auto& device : phases_.devices()) warm_up(*device, start);
  phases_.start_at(0);
  follow_phase();
  rows_->restore(start);
  device_->communicator->barrier(engine_->store());
  log_.print("warm-up: {} steps of each phase, then everything restored", config_.train.warmup.steps);
}

void Trainer::warm_up(TrainingDevice& device, const LoaderPosition& start) {
  const WarmupConfig& warmup = config_.train.warmup;
  TrainingEngine& engine = device.programs->engine();
  std::vector<std::string> tensors = engine.state_tensors();
  if (warmup.keep_muon_momentum) {
    for (const OptimizerGroup& group : device.groups.groups()) {
      for (const std::string& state : group.surviving) std::erase(tensors, state);
    }
  }
  const StateSnapshot initial(engine.store(), tensors);
  rows_->restore(start);
  device.groups.set_rates(progress(0));
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (!engine.plan().has(phase)) continue;
    phases_.start_at(phase);
    read_rows(config_.phases[phase].sequence_length);
    for (std::int64_t number = 1; number <= warmup.steps && !ranks_.group().any(stop_signal() != 0);
         ++number) {
      engine.step(number, *rows_);
    }
  }
  initial.restore();
}

Trainer::Decision Trainer::decide() {
  Decision decision;
  if (ranks_.first()) {
    decision.budget_fraction = budget_.fraction(step_);
    decision.end = budget_.ended(decision.budget_fraction, step_);
    decision.checkpoint = checkpoint_due();
  }
  decision.stop_signal = stop_signal();
  const std::string own(reinterpret_cast<const char*>(&decision), sizeof decision);
  const std::vector<std::string> all = ranks_.group().all_gather(own);
  int signal = 0;
  for (const std::string& bytes : all) {
    std::memcpy(&decision, bytes.data(), sizeof decision);
    if (signal == 0) signal = decision.stop_signal;
  }
  std::memcpy(&decision, all.front().data(), sizeof decision);
  decision.stop_signal = signal;
  return decision;
}

void Trainer::train_until_budget_is_spent() {
  ledger_.enter("train");
  budget_.resume();
  Progress live(&log_, {.what = "training", .total = 1, .plain_lines = false},
                [this] { return budget_.elapsed_seconds(); });
  Decision now;
  while (true) {
    now = decide();
    if (now.checkpoint) begin_checkpoint();
    if (now.end || now.stop_signal != 0) break;
    choose_phase(now.budget_fraction);
    follow_schedules(now.budget_fraction);
    make_step();
    budget_.mark_step();
    slowest_step_seconds_ = std::max(slowest_step_seconds_, budget_.step_seconds());
    if (collect_every_step_) collect_losses();
    if (report_due()) report_steps(now.budget_fraction);
    show_progress(live);
    const std::int64_t every = config_.train.validate_every;
    if (every > 0 && step_ % every == 0) validate("validate");
  }
  if (now.stop_signal != 0) stop_early(now.stop_signal);
  if (reported_ < step_) report_steps(now.budget_fraction);
  device_->communicator->barrier(engine_->store());
  budget_.pause();
  result_.steps = step_;
  result_.tokens = tokens_;
  result_.tokens_per_second = static_cast<double>(result_.tokens) / budget_.elapsed_seconds();
}

void Trainer::make_step() {
  step_start_ = rows_->position();
  updates_ = engine_->updates_begun();
  engine_->step(step_ + 1, *rows_);
  engine_->record_metrics(step_);
  ++step_;
  ranks_.note_step();
  uncollected_tokens_.push_back(engine_->step_tokens());
  tokens_ += engine_->step_tokens();
  step_start_.reset();
}

mlg_progress Trainer::progress(double budget_fraction) const {
  const auto consumed = static_cast<double>(rows_->position().consumed_spans);
  return {step_, config_.train.steps, budget_fraction,
          consumed / static_cast<double>(rows_->loader().spans_per_epoch())};
}

void Trainer::choose_phase(double budget_fraction) {
  const std::size_t phase = phase_at(config_.phases, phases_.index(), step_, budget_fraction);
  if (phase != phases_.index()) begin_phase(phase, budget_fraction);
}

void Trainer::begin_phase(std::size_t phase, double budget_fraction) {
  collect_losses();  // the steps before belong to the phase before
  Batch probe;
  if (phases_.changes_backend(phase)) {
    const LoaderPosition here = rows_->position();
    probe = rows_->next();
    rows_->restore(here);
  }
  const std::optional<Handover> handover = phases_.enter(phase, probe);
  follow_phase();
  tell_phase(budget_fraction, handover);
}

// The trainer's own part of being in a phase.
void Trainer::follow_phase() {
  device_ = &phases_.device();
  engine_ = &phases_.engine();
  collect_every_step_ = phases_.backend().info().threads > 0;
  read_rows(phases_.phase().sequence_length);
}

void Trainer::tell_phase(double budget_fraction, const std::optional<Handover>& handover) {
  const Phase& phase = phases_.phase();
  PhaseRecord record{step_, phase.name, phase_text(phase), budget_fraction, {}, 0, 0};
  log_.print("step {}: phase '{}' begins ({}), {:.1f} % of the budget is spent", step_, phase.name,
             record.way, 100 * budget_fraction);
  if (handover) {
    record.state_sha256 = handover->state_sha256;
    record.loss_before_nats = handover->loss_before_nats;
    record.loss_after_nats = handover->loss_after_nats;
    log_.print("step {}: {} takes over, state {}; the loss of one row is {:.6f} nats there and was {:.6f}",
               step_, phases_.backend().info().description, short_digest(record.state_sha256),
               record.loss_after_nats, record.loss_before_nats);
  }
  metrics_->phase_start(record);
}

void Trainer::follow_schedules(double budget_fraction) {
  device_->groups.set_rates(progress(budget_fraction), phases_.phase().lr_multiplier);
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const OptimizerGroup& group = device_->groups.groups()[i];
    if (group.rate.cycle == cycles_[i]) continue;
    cycles_[i] = group.rate.cycle;
    log_.print("step {}: warm restart of [optimizer.{}], cycle {} begins at lr {:.6g}", step_, group.name,
               group.rate.cycle, group.rate.lr);
    metrics_->restart(step_, group.name, group.rate.cycle, group.rate.lr);
  }
}

bool Trainer::report_due() const {
  return step_ == 1 || step_ % config_.train.log_every == 0;
}

// Books the losses of the steps made since the last call. Waits for the device: for reports and checkpoints,
// and after every step only where that costs nothing.
void Trainer::collect_losses() {
  if (collected_ == step_) return;
  for (const StepMetrics& metrics : engine_->read_metrics(collected_, step_)) {
    const auto tokens = static_cast<std::uint64_t>(uncollected_tokens_.front());
    uncollected_tokens_.pop_front();
    const double loss_nats = metrics.loss_sum_nats / static_cast<double>(tokens);
    if (!std::isfinite(loss_nats) || !std::isfinite(metrics.gradient_norm)) {
      stop_at_non_finite(collected_ + 1, loss_nats, metrics.gradient_norm);
    }
    account_.add(collected_, metrics.loss_sum_nats, tokens, phases_.phase().name);
    gradient_norm_ = metrics.gradient_norm;
    result_.step_loss_nats.push_back(loss_nats);
    result_.final_loss_nats = loss_nats;
    if (++collected_ == 1) check_initial_loss(loss_nats);
  }
}

void Trainer::report_steps(double budget_fraction) {
  collect_losses();
  StepRecord record;
  record.window_first = reported_;
  record.window_last = step_;
  record.loss_nats = result_.final_loss_nats;
  record.gradient_norm = gradient_norm_;
  record.window_loss_nats = account_.window(reported_, step_).value().mean_nats;
  record.run_loss_nats = account_.run().mean_nats();
  record.steps_counted = account_.run().steps_counted;
  for (const auto& [phase, sums] : account_.phases())
    record.phase_loss_nats.emplace_back(phase, sums.mean_nats());
  const WindowMean last = account_.last_steps().value();
  record.last_first = last.first;
  record.last_last = last.last;
  record.last_loss_nats = last.mean_nats;
  if (config_.metrics.hf_compat) record.train_loss_hf = account_.train_loss_hf_nats();
  record.step = step_;
  for (const OptimizerGroup& group : device_->groups.groups())
    record.lr.emplace_back(group.name, group.rate.lr);
  const std::vector<double> norms = engine_->group_gradient_norms();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    record.group_gradient_norm.emplace_back(device_->groups.groups()[i].name, norms[i]);
  }
  record.tokens = tokens_;
  record.elapsed_seconds = budget_.elapsed_seconds();
  record.step_seconds = (record.elapsed_seconds - reported_at_) / static_cast<double>(step_ - reported_);
  record.slowest_step_seconds = std::exchange(slowest_step_seconds_, 0.0);
  record.tokens_per_second =
      static_cast<double>(tokens_ - reported_tokens_) / (record.elapsed_seconds - reported_at_);
  record.budget_fraction = budget_fraction;
  record.phase = phases_.phase().name;
  metrics_->step(record);
  const double remaining = budget_.remaining_seconds(step_);
  log_.print(
      "step {:>6}  loss {:.4f} nats (mean {:.4f})  norm {:.3f}  lr x{:.3f}  {:.0f} tokens/s  {:.1f} "
      "s  {:.1f} %{}",
      record.step, record.loss_nats, record.window_loss_nats, record.gradient_norm,
      device_->groups.groups()[0].rate.lr / device_->groups.groups()[0].base_lr, record.tokens_per_second,
      record.elapsed_seconds, 100 * budget_fraction,
      remaining > 0 ? fmt::format("  {} left", clock_text(remaining)) : "");
  reported_ = step_;
  reported_tokens_ = tokens_;
  reported_at_ = record.elapsed_seconds;
}

void Trainer::check_initial_loss(double loss_nats) {
  const double uniform = std::log(static_cast<double>(config_.model.vocabulary));
  result_.initial_loss_nats = loss_nats;
  metrics_->initial_loss(loss_nats, uniform);
  const bool near = std::abs(loss_nats - uniform) <= initial_loss_tolerance_nats;
  log_.print("{}loss at initialisation {:.4f} nats, ln(vocabulary) {:.4f}",
             near ? "" : "warning: ", loss_nats, uniform);
}

// The live line; lines for the log are report_steps()'s.
void Trainer::show_progress(Progress& live) {
  if (!live.due()) return;
  const auto tokens = static_cast<double>(tokens_);
  live.set(budget_.fraction(step_),
           fmt::format("step {}  loss {:.3f}  {}", step_, result_.final_loss_nats,
                       rate_text(tokens / budget_.elapsed_seconds(), "tokens")),
           budget_.remaining_seconds(step_));
}

// Books its seconds to `phase`: validations on the way ("validate") are not part of the evaluation
// ("evaluate") that a record is allowed so many seconds for.
void Trainer::validate(const std::string& phase) {
  if (!device_->programs->evaluator()) return;
  const RunRanks::Patience patience(ranks_);
  device_->communicator->barrier(engine_->store());
  budget_.pause();
  const std::string before = ledger_.enter(phase);
  device_->programs->refresh_scored_weights();
  Progress progress(
      &log_,
      {.what = "evaluation", .unit = "tokens", .total = static_cast<double>(validation_->tokens.size() - 1)});
  EvaluateHooks hooks;
  hooks.passed = [&](const EvalPosition& position, std::size_t) {
    progress.set(static_cast<double>(position.sums.tokens));
  };
  try {
    result_.validation = evaluate(*device_->programs->evaluator(), *validation_, ranks_.group(), hooks);
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    ledger_.rename("evaluate", "evaluate_unfinished");         // it will be made again
    stop_early(stop_signal() != 0 ? stop_signal() : SIGTERM);  // another rank's
  }
  const EvalResult& score = *result_.validation;
  metrics_->validation(
      {step_, score.val_loss_nats, score.val_bpb, score.tokens, score.bytes, score.seconds, phase});
  log_.print("step {:>6}  {} ({:.1f} s)", step_, score_text(score), score.seconds);
  if (before != "train") return;
  ledger_.enter(before);
  budget_.resume();
}

const char* Trainer::saved_weights_kind() const {
  if (config_.ema.decay > 0 && config_.eval.use_ema) return "averaged";
  return has_evaluation_weights(device_->groups) ? "evaluation" : "last";
}

void Trainer::save() {
  const RunRanks::Patience patience(ranks_);
  ledger_.enter("save");
  note_checkpoint(checkpoints_.finish());
  const bool last_step_saved = checkpoint_step_ == step_ && !last_checkpoint_.empty();
  if (ranks_.group().agree(config_.checkpoint.at_end && step_ > 0 && !last_step_saved) != 0)
    begin_checkpoint();
  engine_->refresh_evaluation_weights();
  if (!ranks_.first()) return;
  // Results of a run that was continued are about the weights that now go.
  std::error_code ignored;
  for (const auto& path : files_.results()) std::filesystem::remove_all(path, ignored);
  const bool averaged = config_.ema.decay > 0 && config_.eval.use_ema;
  const auto source = [&](const PlannedParameter& parameter) {
    return saved_tensor(parameter, device_->groups, averaged);
  };
  weights_sha256_ = save_weights(files_.weights(), engine_->store(), parameters_, source,
                                 weights_metadata(loaded_, saved_weights_kind(), data_.data));
  note_progress_saved();
}

RunResult Trainer::finish() {
  try {
    note_checkpoint(checkpoints_.finish());
  } catch (const Error& error) {  // the weights are saved and scored: the run is not lost
    log_.print("warning: the last checkpoint was not written: {}", error.what());
  }
  if (const auto sentence = account_.inconsistency()) log_.print("warning: {}", *sentence);
  ledger_.close();
  result_.seconds = ledger_.phases();
  result_.peak_memory_bytes = peak_memory_bytes();
  result_.peak_device_memory_bytes = 0;
  for (const auto& device : phases_.devices()) {
    result_.peak_device_memory_bytes +=
        static_cast<std::int64_t>(device->plugins.backend->peak_allocated_bytes());
  }
  ranks_.group().barrier();  // all have come to the end
  if (!ranks_.first()) return result_;
  RunFacts facts;
  facts.plugins = plugins_in_use(loaded_, host_);
  facts.device = phases_.backend().info().description;
  RunLedger run_ledger;
  LedgerEntry booked{LedgerStage::train, ledger_.phases(), {}, {}};
  if (result_.validation) booked.scores.emplace_back("before quantisation", *result_.validation);
  run_ledger.book(std::move(booked));
  facts.broken_limits = broken_limits(config_.ledger, run_ledger);
  facts.weights_kind = saved_weights_kind();
  facts.loss = &account_;
  facts.hf_compat = config_.metrics.hf_compat;
  facts.data = data_.data;
  facts.shared_text = data_.shared;
  facts.weights_sha256 = weights_sha256_;
  run_ledger.write(files_.directory, config_.ledger);
  require_limits(config_.ledger, run_ledger);
  for (const std::string& limit : facts.broken_limits) log_.print("warning: {}", limit);
  write_result(files_, loaded_, result_, facts);
  log_.result(final_table(result_));
  return result_;
}

}  // namespace mulligan
