#include "tools/cost/step_rehearsal.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/run/device_plan.h"

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

StepRehearsal::StepRehearsal(LoadedConfig& loaded, PluginHost& host, int ranks, std::int64_t document_tokens)
    : config_(resolved(loaded, host).config),
      document_tokens_(document_tokens),
      own_(config_, {}, make_run_plugins(loaded, host), 1, make_self_communicator(ranks)),
      access_(*own_.plugins.backend) {
  for (const Program* program : own_.engine.programs()) {
    for (std::size_t i = 0; i < program->handles().size(); ++i) calls_[program->handles()[i]] = {program, i};
  }
  own_.plugins.backend->watch(this);
  own_.engine.make_ready();
}

StepRehearsal::~StepRehearsal() {
  own_.plugins.backend->watch(nullptr);
}

void StepRehearsal::add(StepEvent::Kind kind, std::size_t bytes) {
  if (listening_) events_.push_back({kind, nullptr, 0, static_cast<std::int64_t>(bytes)});
}

void StepRehearsal::runs(std::span<void* const> handles) {
  if (!listening_) return;
  for (void* handle : handles) {
    const auto [program, call] = calls_.at(handle);
    events_.push_back({StepEvent::Kind::call, program, call, 0});
  }
}

std::int64_t StepRehearsal::segment_tokens(std::size_t phase) const {
  const std::int64_t longest = config_.phases[phase].sequence_length;
  return document_tokens_ == 0 ? longest : std::min(document_tokens_, longest);
}

std::vector<StepEvent> StepRehearsal::step(std::size_t phase) {
  const std::int64_t tokens = tokens_per_micro_batch(config_.train);
  const Batch row = row_of(tokens, std::min(segment_tokens(phase), tokens), document_tokens_ == 0);
  own_.engine.enter(phase);
  own_.groups.set_rates({0, horizon_steps(config_), 0, 0});
  events_.clear();
  listening_ = true;
  own_.engine.step(1, [&row]() -> const Batch& { return row; });
  listening_ = false;
  return events_;
}

mlg_work StepRehearsal::work(const StepEvent& call) const {
  return own_.plugins.backend->work(call.program->handles().at(call.call));
}

const Program& StepRehearsal::micro_step(std::size_t phase) const {
  return *own_.engine.plan().find(phase, StepRole::micro_step);
}

std::optional<StepRole> StepRehearsal::role_of(const Program* program) const {
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    for (const PlannedStep& planned : own_.engine.plan().steps(phase)) {
      if (planned.program == program) return planned.role;
    }
  }
  return {};
}

}  // namespace mulligan
