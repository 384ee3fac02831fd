#include "tools/cost/step_rehearsal.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "framework/core/error.h"
#include "framework/run/device_plan.h"
#include "framework/run/run_plugins.h"

namespace mulligan {
namespace {

// A sequence of `tokens` tokens in documents of `document` tokens. Unless `even`, the first document is shorter, so that no
// library takes them for a plain batch.
Batch row_of(std::int64_t tokens, std::int64_t document, bool even) {
  Batch row;
  row.tokens.resize(static_cast<std::size_t>(tokens));
  row.targets.resize(static_cast<std::size_t>(tokens));
  row.cu_seqlens = {0};
  std::int64_t end = even ? document : std::max<std::int64_t>(1, document / 2);
  for (; end < tokens; end += document) row.cu_seqlens.push_back(static_cast<std::int32_t>(end));
  row.cu_seqlens.push_back(static_cast<std::int32_t>(tokens));
  return row;
}

class Recorder final : public BackendWatch {
 public:
  void learn(const Program& program) {
    for (std::size_t i = 0; i < program.handles().size(); ++i) calls_[program.handles()[i]] = {&program, i};
  }
  void runs(std::span<void* const> handles) override {
    for (void* handle : handles) {
      const auto [program, call] = calls_.at(handle);
      add({StepEvent::Kind::call, program, call, 0, 0});
    }
  }
  void zeroes(std::size_t bytes) override { add_bytes(StepEvent::Kind::zero, bytes); }
  void copies(std::size_t bytes) override { add_bytes(StepEvent::Kind::copy, bytes); }
  void uploads(std::size_t bytes) override { add_bytes(StepEvent::Kind::upload, bytes); }
  void add(const StepEvent& event) {
    if (listening_) events_.push_back(event);
  }

  void listen() {
    events_.clear();
    listening_ = true;
  }
  std::vector<StepEvent> take() {
    listening_ = false;
    return std::move(events_);
  }

 private:
  void add_bytes(StepEvent::Kind kind, std::size_t bytes) {
    add({kind, nullptr, 0, static_cast<std::int64_t>(bytes), 0});
  }
  std::unordered_map<const void*, std::pair<const Program*, std::size_t>> calls_;
  std::vector<StepEvent> events_;
  bool listening_ = false;
};

LoadedConfig& resolved(LoadedConfig& loaded, PluginHost& host) {
  // What [backend] sets for another backend does not apply; what was meant for cuda is not left out unseen.
  if (loaded.config.backend.plugin != "cuda") {
    resolve_run_plugins(loaded, host);
    if (const std::vector<KernelRow>& rows = loaded.config.kernels; !rows.empty())
      throw config_error("{}: predictions are for cuda; set backend.plugin=cuda.", rows[0].origin.text());
  }
  plan_on_cuda(loaded);
  resolve_run_plugins(loaded, host);
  return loaded;
}

}  // namespace

struct StepRehearsal::Parts {
  Parts(LoadedConfig& loaded, PluginHost& host, int ranks, std::int64_t documents)
      : config(resolved(loaded, host).config),
        plugins(make_run_plugins(loaded, host)),
        parameters(plan_parameters(config)),
        groups(config, plugins, parameters),
        communicator(ranks,
                     [this](StepEvent::Kind kind, std::size_t batch) {
                       recorder.add({kind, nullptr, 0, 0, batch});
                     }),
        engine(config, {}, plugins, parameters, groups, communicator, 1),
        arena(*plugins.backend),
        access(*plugins.backend),
        document_tokens(documents) {
    arena.bind(engine.programs(), engine.store());
    for (const Program* program : engine.programs()) recorder.learn(*program);
    plugins.backend->watch(&recorder);
    engine.make_ready();
  }
  ~Parts() { plugins.backend->watch(nullptr); }

  const RunConfig& config;
  Recorder recorder;
  RunPlugins plugins;
  std::vector<PlannedParameter> parameters;
  OptimizerGroups groups;
  RehearsedCommunicator communicator;
  TrainingEngine engine;
  SharedArena arena;
  CallAccess access;
  std::int64_t document_tokens;
};

StepRehearsal::StepRehearsal(LoadedConfig& loaded, PluginHost& host, int ranks, std::int64_t document_tokens)
    : parts_(std::make_unique<Parts>(loaded, host, ranks, document_tokens)) {}

StepRehearsal::~StepRehearsal() = default;

const RunConfig& StepRehearsal::config() const {
  return parts_->config;
}

const CallAccess& StepRehearsal::access() const {
  return parts_->access;
}

std::int64_t StepRehearsal::segment_tokens(std::size_t phase) const {
  const std::int64_t longest = parts_->config.phases[phase].sequence_length;
  return parts_->document_tokens == 0 ? longest : std::min(parts_->document_tokens, longest);
}

RehearsedStep StepRehearsal::step(std::size_t phase) {
  const std::int64_t tokens = tokens_per_micro_batch(parts_->config.train);
  const Batch row = row_of(tokens, std::min(segment_tokens(phase), tokens), parts_->document_tokens == 0);
  parts_->engine.enter(phase);
  parts_->groups.set_rates({0, horizon_steps(parts_->config), 0, 0});
  parts_->recorder.listen();
  parts_->engine.step(1, [&row]() -> const Batch& { return row; });
  return {parts_->recorder.take(), parts_->communicator.batches()};
}

mlg_work StepRehearsal::work(const StepEvent& call) const {
  return parts_->plugins.backend->work(call.program->handles().at(call.call));
}

const Program& StepRehearsal::micro_step(std::size_t phase) const {
  return *parts_->engine.plan().find(phase, StepRole::micro_step);
}

std::optional<StepRole> StepRehearsal::role_of(const Program* program) const {
  for (std::size_t phase = 0; phase < parts_->config.phases.size(); ++phase) {
    for (const PlannedStep& planned : parts_->engine.plan().steps(phase)) {
      if (planned.program == program) return planned.role;
    }
  }
  return {};
}

namespace {

class RehearsedBatch final : public TransferBatch {
 public:
  RehearsedBatch(const RehearsedCommunicator::Tell& tell, std::size_t number)
      : tell_(tell), number_(number) {}
  void submit() override { tell_(StepEvent::Kind::submit, number_); }
  void join() override { tell_(StepEvent::Kind::join, number_); }

 private:
  const RehearsedCommunicator::Tell& tell_;
  std::size_t number_;
};

}  // namespace

RehearsedCommunicator::RehearsedCommunicator(int ranks, Tell tell)
    : planned_(make_planned_communicator(ranks)), tell_(std::move(tell)) {}

HostGroup& RehearsedCommunicator::group() {
  return planned_->group();
}

std::unique_ptr<TransferBatch> RehearsedCommunicator::prepare(TensorStore& store,
                                                              std::vector<Transfer> transfers) {
  std::vector<RehearsedTransfer> batch;
  for (const Transfer& transfer : transfers) {
    batch.push_back(
        {transfer.kind, transfer.from, transfer.count * dtype_size(store.type(transfer.from).dtype)});
  }
  batches_.push_back(std::move(batch));
  return std::make_unique<RehearsedBatch>(tell_, batches_.size() - 1);
}

}  // namespace mulligan
