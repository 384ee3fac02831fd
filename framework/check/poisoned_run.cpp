#include "framework/check/poisoned_run.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mulligan/kernel.hpp>

#include "framework/core/philox.h"

namespace mulligan {

std::string compare_with_differences(const std::string& what, const std::vector<float>& values,
                                     const std::vector<float>& gradient, const ScalarFunction& function) {
  constexpr double step = 0x1p-6;  // exact in f32 next to values of order one
  constexpr double relative_tolerance = 0.01, absolute_tolerance = 1e-3;
  double largest = 0, worst = 0, wanted = 0;
  std::size_t at = 0;
  std::vector<float> changed = values;
  const auto value_at = [&](std::size_t i, double offset) {
    changed[i] = static_cast<float>(static_cast<double>(values[i]) + offset);
    const double result = function(changed);
    changed[i] = values[i];
    return result;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double near = value_at(i, step) - value_at(i, -step);
    const double far = value_at(i, 2 * step) - value_at(i, -2 * step);
    const double slope = (8 * near - far) / (12 * step);
    largest = std::max({largest, std::abs(slope), static_cast<double>(std::abs(gradient[i]))});
    const double error = std::abs(slope - static_cast<double>(gradient[i]));
    if (error > worst || !std::isfinite(error)) {
      worst = error;
      wanted = slope;
      at = i;
      if (!std::isfinite(error)) break;
    }
  }
  if (std::isfinite(worst) && worst <= absolute_tolerance + relative_tolerance * largest) return {};
  return fmt::format("{}: element {} is {}, but finite differences give {:.6g}", what, at, gradient[at],
                     wanted);
}

double weighed_sum(const std::vector<float>& weights, const std::vector<float>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(weights[i]) * static_cast<double>(values[i]);
  return sum;
}

std::vector<float> sample(std::size_t count, unsigned seed, float scale) {
  const PhiloxStream stream(seed, "plugin check");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * static_cast<float>(stream.normal(i));
  return values;
}

namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// The same calls on memory of its own for each value: what a planned arena shares would hold the last owner's
// numbers where nothing was written.
Graph with_own_memory(const Graph& graph) {
  Graph copy;
  for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
    const Graph::ValueInfo& info = graph.info(Value{id});
    if (info.storage == Graph::Storage::view) {
      copy.view(info.base, info.offset, info.type);
    } else if (info.storage == Graph::Storage::external) {
      copy.external(info.name, info.type);
    } else {
      copy.external(fmt::format("scratch/{}", id), info.type);
    }
  }
  for (const Call& call : graph.calls()) copy.call(call.kernel, call.arguments, call.attributes);
  return copy;
}

}  // namespace

PoisonedRun::PoisonedRun(Backend& backend, const Graph& graph, const std::string& name)
    : backend_(backend), store_(backend), program_(backend, with_own_memory(graph), name) {
  store_.create_externals(program_.graph());
  workspace_ = backend.allocate(static_cast<std::size_t>(program_.workspace_bytes()));
  program_.bind(store_, nullptr, workspace_.address());
}

void PoisonedRun::set(const std::string& external, std::vector<float> values) {
  sdk::dispatch_compute(store_.type(external).dtype, [&]<typename T>() {
    given_[external] = bytes_of(std::vector<T>(values.begin(), values.end()));
  });
}

void PoisonedRun::set(const std::string& external, const std::vector<std::int32_t>& values) {
  given_[external] = bytes_of(values);
}

void PoisonedRun::keep(const std::string& external) {
  kept_.push_back(external);
  store_.zero(external);
}

void PoisonedRun::keep(const std::string& external, const std::vector<float>& values) {
  if (std::ranges::find(kept_, external) == kept_.end()) kept_.push_back(external);
  sdk::dispatch_compute(store_.type(external).dtype, [&]<typename T>() {
    store_.upload(external,
                  std::span<const std::byte>(bytes_of(std::vector<T>(values.begin(), values.end()))));
  });
}

void PoisonedRun::fill(void* address, std::size_t bytes, std::uint8_t poison) {
  if (bytes == 0) return;
  const std::vector<std::uint8_t> pattern(bytes, poison);
  backend_.upload(address, pattern.data(), bytes);
}

void PoisonedRun::run(std::uint8_t poison) {
  prepare_memory(poison);
  run_calls_only();
}

void PoisonedRun::run_stepwise(std::uint8_t poison) {
  prepare_memory(poison);
  program_.run_profiled();
}

void PoisonedRun::prepare_memory(std::uint8_t poison) {
  fill(workspace_.address(), workspace_.bytes(), poison);
  for (const std::string& name : store_.names()) {
    if (const auto given = given_.find(name); given != given_.end()) {
      store_.upload(name, std::span<const std::byte>(given->second));
    } else if (std::ranges::find(kept_, name) == kept_.end()) {
      fill(store_.address(name), static_cast<std::size_t>(store_.type(name).bytes()), poison);
    }
  }
}

void PoisonedRun::run_calls_only() {
  program_.run();
  backend_.synchronize();
}

std::vector<float> PoisonedRun::floats(const std::string& external) const {
  return sdk::dispatch_compute(store_.type(external).dtype, [&]<typename T>() -> std::vector<float> {
    const auto stored = store_.download_as<T>(external);
    return {stored.begin(), stored.end()};
  });
}

std::vector<double> PoisonedRun::numbers(Value value) const {
  const Graph::ValueInfo& info = graph().info(value);
  const std::string& name = graph().info(graph().root(value)).name;
  std::vector<double> all;
  if (store_.type(name).dtype == MLG_I32) {
    const auto stored = store_.download_as<std::int32_t>(name);
    all.assign(stored.begin(), stored.end());
  } else {
    const std::vector<float> stored = floats(name);
    all.assign(stored.begin(), stored.end());
  }
  const auto first = all.begin() + (info.storage == Graph::Storage::view ? info.offset : 0);
  return {first, first + info.type.elements()};
}

}  // namespace mulligan
