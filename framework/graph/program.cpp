#include "framework/graph/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"

namespace mulligan {
namespace {

struct Lifetime {
  std::uint32_t id = 0;
  std::int64_t bytes = 0;
  std::int64_t first = 0, last = 0;  // indices of the first and last call that mention it
  std::int64_t offset = 0;
};

std::vector<Lifetime> scratch_lifetimes(const Graph& graph) {
  std::vector<Lifetime> by_id(graph.value_count() + 1);
  std::int64_t index = 0;
  for (const Call& call : graph.calls()) {
    for (const Value argument : call.arguments) {
      if (!argument) continue;
      const Value root = graph.root(argument);
      if (graph.info(root).storage != Graph::Storage::scratch) continue;
      Lifetime& life = by_id[root.id];
      if (life.id == 0) {
        const std::int64_t bytes = graph.type(root).bytes();
        life = {root.id, (bytes + arena_alignment - 1) / arena_alignment * arena_alignment, index, index, 0};
      }
      life.last = index;
    }
    ++index;
  }
  std::erase_if(by_id, [](const Lifetime& life) { return life.id == 0; });
  return by_id;
}

// The lowest offset at which `life` fits between the already placed values that are alive at the same time.
std::int64_t lowest_free_offset(const Lifetime& life, const std::vector<Lifetime>& placed_by_offset) {
  std::int64_t offset = 0;
  for (const Lifetime& other : placed_by_offset) {
    if (other.last < life.first || life.last < other.first) continue;
    if (offset + life.bytes <= other.offset) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph) {
  std::vector<Lifetime> lives = scratch_lifetimes(graph);
  std::ranges::sort(lives, [](const Lifetime& a, const Lifetime& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  });
  MemoryPlan plan;
  plan.offset.assign(graph.value_count() + 1, -1);
  std::vector<Lifetime> placed;  // sorted by offset
  for (Lifetime& life : lives) {
    life.offset = lowest_free_offset(life, placed);
    const auto position =
        std::ranges::upper_bound(placed, life.offset, {}, [](const Lifetime& other) { return other.offset; });
    placed.insert(position, life);
    plan.offset[life.id] = life.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, life.offset + life.bytes);
  }
  return plan;
}

namespace {

std::vector<mlg_tensor> argument_types(const Graph& graph, const Call& call) {
  std::vector<mlg_tensor> types;
  for (const Value argument : call.arguments) {
    types.push_back(argument ? graph.type(argument).to_c()
                             : mlg_tensor{nullptr, MLG_ABSENT, 0, {1, 1, 1, 1}});
  }
  return types;
}

Error refused(const std::string& program, const Call& call, const Error& error) {
  return {error.code(), fmt::format("program '{}', kernel '{}': {}", program, call.kernel, error.what())};
}

}  // namespace

Program::Program(Backend& backend, Graph graph, std::string name)
    : backend_(&backend), graph_(std::move(graph)), name_(std::move(name)), plan_(plan_memory(graph_)) {
  for (const Call& call : graph_.calls()) {
    const std::vector<mlg_tensor> arguments = argument_types(graph_, call);
    std::vector<mlg_attribute> attributes;
    for (const Attribute& attribute : call.attributes)
      attributes.push_back({attribute.name.c_str(), attribute.value});
    const mlg_call request{call.kernel.c_str(), arguments.data(),
                           static_cast<std::uint32_t>(arguments.size()), attributes.data(),
                           static_cast<std::uint32_t>(attributes.size())};
    try {
      prepared_.push_back(backend_->prepare(request));
    } catch (const Error& error) {
      throw refused(name_, call, error);
    }
    handles_.push_back(prepared_.back().handle());
    workspace_bytes_ =
        std::max(workspace_bytes_, static_cast<std::int64_t>(prepared_.back().workspace_bytes()));
  }
}

void Program::bind(const TensorStore& store, void* arena, void* workspace) {
  const auto address_of = [&](Value value) -> void* {
    if (!value) return nullptr;
    const Graph::ValueInfo& info = graph_.info(value);
    const Value root = graph_.root(value);
    const Graph::ValueInfo& owner = graph_.info(root);
    auto* start = owner.storage == Graph::Storage::external
                      ? static_cast<std::byte*>(store.address(owner.name))
                      : static_cast<std::byte*>(arena) + plan_.offset[root.id];
    const std::int64_t offset = info.storage == Graph::Storage::view ? info.offset : 0;
    return start + offset * dtype_size(info.type.dtype);
  };
  std::vector<void*> addresses;
  for (std::size_t index = 0; index < prepared_.size(); ++index) {
    addresses.clear();
    for (const Value argument : graph_.calls()[index].arguments) addresses.push_back(address_of(argument));
    try {
      prepared_[index].bind(addresses.data(), workspace);
    } catch (const Error& error) {
      throw refused(name_, graph_.calls()[index], error);
    }
  }
  bound_ = true;
}

void Program::require_bound() const {
  if (!bound_) throw std::logic_error(fmt::format("program '{}' was not bound", name_));
}

void Program::run_calls(std::size_t begin, std::size_t count) {
  try {
    backend_->run(std::span(handles_).subspan(begin, count));
  } catch (const KernelFailure& failure) {
    throw run_error("program '{}', call {} of {}: {}", name_, begin + failure.call() + 1, handles_.size(),
                    failure.what());
  }
}

void Program::run() {
  require_bound();
  run_calls(0, handles_.size());
}

void Program::run_range(std::size_t begin, std::size_t end) {
  require_bound();
  if (begin > end || end > handles_.size()) {
    throw std::logic_error(fmt::format("program '{}' has no calls {} to {}", name_, begin, end));
  }
  run_calls(begin, end - begin);
}

std::vector<double> Program::run_profiled() {
  require_bound();
  std::vector<double> seconds;
  seconds.reserve(handles_.size());
  backend_->synchronize();
  for (std::size_t index = 0; index < handles_.size(); ++index) {
    const auto start = std::chrono::steady_clock::now();
    run_calls(index, 1);
    backend_->synchronize();
    seconds.push_back(seconds_since(start));
  }
  return seconds;
}

std::unique_ptr<Program> make_program(TensorStore& store, Graph graph, std::string name) {
  store.create_externals(graph);
  return std::make_unique<Program>(store.backend(), std::move(graph), std::move(name));
}

void SharedArena::bind(const std::vector<Program*>& programs, const TensorStore& store) {
  std::int64_t arena_bytes = 0;
  std::int64_t workspace_bytes = 0;
  for (const Program* program : programs) {
    arena_bytes = std::max(arena_bytes, program->arena_bytes());
    workspace_bytes = std::max(workspace_bytes, program->workspace_bytes());
  }
  arena_ = backend_.allocate(static_cast<std::size_t>(arena_bytes));
  workspace_ = backend_.allocate(static_cast<std::size_t>(workspace_bytes));
  for (Program* program : programs) program->bind(store, arena_.address(), workspace_.address());
}

}  // namespace mulligan
