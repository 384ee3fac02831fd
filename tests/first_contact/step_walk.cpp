#include "tests/first_contact/step_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/run/device_plan.h"
#include "framework/run/run_plugins.h"
#include "framework/run/training_data.h"
#include "framework/step/step_graphs.h"
#include "tools/cost/cost_text.h"

namespace mulligan::first_contact {
namespace {

std::string dtypes_of(const Graph& graph, const Call& call) {
  std::string text;
  for (const Value argument : call.arguments)
    text += (text.empty() ? "" : " ") + std::string(argument ? dtype_name(graph.type(argument).dtype) : "-");
  return text;
}

std::string attributes_of(const Call& call) {
  std::string text;
  for (const Attribute& attribute : call.attributes)
    text += fmt::format(" {}={}", attribute.name, attribute.value);
  return text;
}

}  // namespace

StepWalk::StepWalk(const LoadedConfig& loaded, PluginHost& host)
    : config_(loaded.config),
      plugins_(make_phase_plugins(loaded, host, "backend")),
      reference_(make_run_plugins(loaded, host, "cpu")),
      parameters_(plan_parameters(config_)),
      groups_(config_, plugins_, parameters_),
      communicator_(make_self_communicator()),
      engine_(config_, "backend", plugins_, parameters_, groups_, *communicator_, 1) {
  std::int64_t arena_bytes = 0, workspace_bytes = 0;
  for (const Program* program : engine_.programs()) {
    arena_bytes = std::max(arena_bytes, program->arena_bytes());
    workspace_bytes = std::max(workspace_bytes, program->workspace_bytes());
  }
  arena_ = device().allocate(static_cast<std::size_t>(arena_bytes));
  workspace_ = device().allocate(static_cast<std::size_t>(workspace_bytes));
  const std::vector<std::byte> pattern(std::size_t{1} << 24, std::byte{0xFF});
  nan_bytes_ = device().allocate(pattern.size());
  device().upload(nan_bytes_.address(), pattern.data(), pattern.size());
  for (Program* program : engine_.programs())
    program->bind(engine_.store(), arena_.address(), workspace_.address());
  engine_.initialise(static_cast<std::uint64_t>(config_.run.seed));
}

std::int64_t StepWalk::measurements() const {
  try {
    return matmul_measurements(*plugins_.backend, engine_.programs());
  } catch (const Error&) {  // a backend that does not say what its calls do
    return 0;
  }
}

bool StepWalk::run_program(Program& program, const std::string& role, const WalkOptions& options,
                           const WalkListener& listener) {
  const ProgramMemory memory{&engine_.store(), arena_.address(), workspace_.address(), workspace_.bytes(),
                             &nan_bytes_};
  const Graph& graph = program.graph();
  for (std::size_t index = 0; index < graph.calls().size(); ++index) {
    const Call& call = graph.calls()[index];
    CallName name{0, role, call.kernel, shape_text(graph, call), dtypes_of(graph, call), false};
    const std::string key = call.kernel + name.shapes + name.dtypes + attributes_of(call);
    const auto [known, added] = known_.emplace(key, static_cast<int>(known_.size()) + 1);
    name.number = known->second;
    const bool taken_over = options.taken_over.contains(name.number) || broken_.contains(name.number);
    if (!added && !taken_over) {
      program.run_range(index, index + 1);
      continue;
    }
    if (added) {
      try {
        name.library = device().work(program.handles()[index]).library_calls > 0;
      } catch (const Error&) {  // a backend that does not say what its calls do
      }
      listener.begins(name);
    }
    const Treatment treatment = taken_over                                ? Treatment::take_over
                                : seconds_since(start_) > options.seconds ? Treatment::run_only
                                                                          : Treatment::compare;
    const CallReport report =
        ComparedCall(device(), *reference_.backend, program, index, memory).run(treatment);
    if (report.verdict == CallVerdict::failed) broken_.insert(name.number);
    if (added) listener.ends(name, report);
    if (report.stopped) return false;
  }
  return true;
}

bool StepWalk::run_phase(std::size_t phase, const WalkOptions& options, const WalkListener& listener) {
  engine_.enter(phase);
  LoaderOptions rows = loader_options(config_, unchecked_training_data(config_), 0, 1);
  rows.max_segment_tokens = config_.phases[phase].sequence_length;
  Prefetcher prefetcher(std::make_unique<Loader>(rows), 1);
  const Batch& row = prefetcher.next();
  PackedInputWriter(step_tensor::batch, static_cast<std::int64_t>(row.tokens.size()))
      .upload(engine_.store(), row.tokens, row.targets, row.cu_seqlens);
  engine_.store().zero(step_tensor::sums);
  groups_.set_rates({step_, 0, 0, 0});
  groups_.upload_scalars(engine_.store(), ++step_);
  for (const PlannedStep& planned : engine_.plan().steps(phase)) {
    if (planned.runs_per_step == 0) continue;
    if (!run_program(*planned.program, role_name(planned.role), options, listener)) return false;
  }
  return true;
}

bool StepWalk::run(const WalkOptions& options, const WalkListener& listener) {
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (engine_.plan().has(phase) && !run_phase(phase, options, listener)) return false;
  }
  return true;
}

}  // namespace mulligan::first_contact
