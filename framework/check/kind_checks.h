// The checks of each kind of plugin (plugin_check.h). Each adds its lines to the list; `config` holds
// the resolved keys.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/check/allocation_count.h"
#include "framework/core/error.h"
#include "framework/plugin/backend.h"

namespace mulligan {

// Outcomes of checks of a plugin, one line each.
struct CheckLine {
  std::string what;     // "gradients equal finite differences"
  std::string problem;  // empty: passed
};

class CheckList {
 public:
  // Runs `body`, which returns a problem or an empty string; an exception is a problem.
  void add(const std::string& what, const std::function<std::string()>& body) {
    CheckLine line{what, {}};
    try {
      line.problem = body();
    } catch (const std::exception& error) {
      line.problem = error.what();
    }
    lines_.push_back(std::move(line));
  }
  const std::vector<CheckLine>& lines() const { return lines_; }

 private:
  std::vector<CheckLine> lines_;
};

// The first element in which two runs differ, as a problem, or empty. Bits are compared.
inline std::string first_difference(const char* what, const std::vector<float>& a,
                                    const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("element {} of {} is {} once and {} another time", i, what, a[i], b[i]);
  }
  return {};
}
// The first place where two results differ by more than `tolerance` times the largest magnitude of `a`.
inline std::string first_distance(const char* what, const std::vector<float>& a, const std::vector<float>& b,
                                  double tolerance) {
  float largest = 0;
  for (const float value : a) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= tolerance * largest))
      return fmt::format("element {} of {} is {} once and {} another time", i, what, a[i], b[i]);
  }
  return {};
}

// Makes backends that know the kernels of the plugin under check; `threads` are the cpu backend's. On another backend only the plugin's
// own results are checked; how its kernels run there is the backend's matter.
struct BackendMaker {
  std::function<std::unique_ptr<Backend>(int threads)> make;
  bool is_cpu = true;
  std::unique_ptr<Backend> operator()(int threads) const { return make(threads); }
};

void check_loss(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                CheckList& list);
void check_optimizer(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                     CheckList& list);
void check_adapters(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                    CheckList& list);
void check_schedule(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_quantizer(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_communicator(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                        CheckList& list);
void check_transform(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_ensemble(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);
void check_wrapper(const PluginHandle& plugin, const PluginConfig& config, const BackendMaker& make,
                   CheckList& list);
void check_backend(const PluginHandle& plugin, const PluginConfig& config, CheckList& list);

// Allocations of `body`, a call of the plugin's function `where`, as a problem, or empty.
template <typename Body>
std::string allocation_problem(const char* where, Body&& body, bool (*counts)() = nullptr) {
  const std::optional<std::int64_t> allocations = allocations_of(body, counts);
  if (!allocations || *allocations == 0) return {};
  return fmt::format("{} allocates memory {} times; take it in create() or as workspace", where,
                     *allocations);
}

// The same for a `body` that runs kernels: counts those of the plugin, not the backend's own.
template <typename Body>
std::string kernel_allocation_problem(Body&& body) {
  return allocation_problem("a kernel", body, [] {
    const char* kernel = plugin_running()->kernel;
    return kernel && kernel_owner(kernel);
  });
}

}  // namespace mulligan
