// The checks of each kind of plugin (plugin_check.h). Each adds its lines to the list; `config` holds
// the resolved keys.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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

// A parallel_for that does not cut.
inline void in_one_piece(std::int64_t count, std::int64_t, void (*body)(void*, std::int64_t, std::int64_t),
                         void* context) {
  if (count > 0) body(context, 0, count);
}

// The first problem that `body` finds in one of `cases`, or empty.
template <typename Cases, typename Body>
std::string first_problem(const Cases& cases, Body&& body) {
  for (const auto& one : cases) {
    if (std::string problem = body(one); !problem.empty()) return problem;
  }
  return {};
}

// The first element in which two runs differ, as a problem, or empty. Bits are compared.
inline std::string first_difference(const std::string& what, const std::vector<float>& a,
                                    const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("element {} of {} is {} once and {} another time", i, what, a[i], b[i]);
  }
  return {};
}

// Results of a run by name.
using NamedResults = std::vector<std::pair<std::string, std::vector<float>>>;
inline std::string first_difference(const NamedResults& a, const NamedResults& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::string problem = first_difference(a[i].first, a[i].second, b[i].second); !problem.empty())
      return problem;
  }
  return {};
}
// Checks that every result is written and depends on the inputs only. Memory held NaN before the first run, numbers before the other.
inline std::string written_problem(const NamedResults& after_nan, const NamedResults& after_numbers) {
  for (const auto& [what, values] : after_nan) {
    const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (odd != values.end())
      return fmt::format("element {} of {} is not written (it is {} where memory held NaN before)",
                         odd - values.begin(), what, *odd);
  }
  const std::string problem = first_difference(after_nan, after_numbers);
  if (problem.empty()) return problem;
  return problem + ", by what memory held before: it is not written, or reads what was not";
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

// Adds that results do not depend on the number of threads. `problem` compares another backend with that of one thread.
inline void add_thread_check(CheckList& list, const BackendMaker& make,
                             const std::function<std::string(Backend&)>& problem) {
  list.add("other numbers of threads give the same bits", [&] {
    return first_problem(std::array{1, 2, 3}, [&](int threads) {
      const std::string found = problem(*make(threads));
      return found.empty() ? found : fmt::format("{} (1 and {} threads)", found, threads);
    });
  });
}

// Whether the numbers that `fill` writes for a step are finite and a function of the step alone.
template <typename Instance, typename Fill>
std::string scalars_problem(const Instance& instance, const Instance& fresh, Fill fill) {
  std::vector<float> once(instance.scalar_count(), NAN), again = once;
  for (const std::int64_t step : {1, 2, 50, 1000, 100000}) {
    fill(instance, step, once);
    for (std::size_t i = 0; i < once.size(); ++i) {
      if (!std::isfinite(once[i])) return fmt::format("number {} of step {} is {}", i, step, once[i]);
    }
    fill(fresh, step, again);
    if (std::string problem = first_difference("the numbers", once, again); !problem.empty())
      return fmt::format("{} of step {}, by what was asked before", problem, step);
    fill(instance, 7, again);
  }
  return {};
}

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

// Counts the allocations of all threads during `body`, which calls the plugin's function `where`, and returns them as a problem.
// The result is empty if there are none, or if this program cannot count them. `counts` may leave allocations out.
template <typename Body>
std::string allocation_problem(const char* where, Body&& body, bool (*counts)() = nullptr) {
  AllocationCount& count = allocation_count();
  if (!count.linked) return {};
  count.counts = counts;
  count.allocations = 0;
  count.counting = true;
  body();
  count.counting = false;
  if (count.allocations == 0) return {};
  return fmt::format("{} allocates memory {} times; take it in create() or as workspace", where,
                     count.allocations.load());
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
