#include "tools/stats/arena_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/statistic.h"

namespace mulligan::stats {
namespace {

constexpr double arena_target = 3.28;           // nats per token
constexpr double arena_margin = 0.004;          // of the target, for one run: 3.09 sigma, p < 0.001
constexpr double arena_sigma = 0.0013;          // of one run's loss, which the benchmark takes as known
constexpr double nats_per_step = 0.0045 / 100;  // what a step more is worth near the target

// The rule names 3.276 as the limit of a single run, which in binary lies just below or above it.
bool reaches_margin(double value) {
  return value >= arena_margin - 1e-9;
}

double p_of(double value) {
  return std::erfc(value / arena_sigma / std::numbers::sqrt2) / 2;
}

}  // namespace

ArenaStep judge_arena_step(std::int64_t step, std::span<const double> losses) {
  if (losses.empty()) throw std::invalid_argument("a result needs a run");
  const Statistic statistic = statistic_of(losses);
  ArenaStep result;
  result.step = step;
  result.runs = statistic.n;
  result.mean = statistic.mean;
  result.deviation = statistic.deviation;
  result.value = (arena_target - result.mean) * std::sqrt(static_cast<double>(result.runs));
  result.p = p_of(result.value);
  result.accepted = reaches_margin(result.value);
  return result;
}

std::vector<ArenaStep> judge_arena(std::span<const ArenaRun> runs) {
  std::vector<ArenaStep> steps;
  if (runs.empty()) return steps;
  for (const auto& [step, first] : runs.front().losses) {
    std::vector<double> losses;
    for (const ArenaRun& run : runs) {
      const auto found = run.losses.find(step);
      if (found != run.losses.end()) losses.push_back(found->second);
    }
    if (losses.size() == runs.size()) steps.push_back(judge_arena_step(step, losses));
  }
  return steps;
}

std::optional<ArenaStep> earliest_accepted(std::span<const ArenaStep> steps) {
  for (const ArenaStep& step : steps) {
    if (step.accepted) return step;
  }
  return {};
}

ArenaComparison compare_arena(const ArenaStep& old_result, const ArenaStep& new_result) {
  if (old_result.runs == 0 || new_result.runs == 0)
    throw std::invalid_argument("a comparison needs runs of both results");
  const double steps = static_cast<double>(old_result.step - new_result.step) * nats_per_step;
  const double spread =
      std::sqrt(1.0 / static_cast<double>(old_result.runs) + 1.0 / static_cast<double>(new_result.runs));
  ArenaComparison result;
  result.value = (old_result.mean - new_result.mean + steps) / spread;
  result.p = p_of(result.value);
  result.better = reaches_margin(result.value);
  return result;
}

std::optional<std::pair<std::string, std::string>> same_arena_run(std::span<const ArenaRun> runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::size_t common = 0, equal = 0;
      for (const auto& [step, loss] : runs[i].losses) {
        const auto other = runs[j].losses.find(step);
        if (other == runs[j].losses.end()) continue;
        ++common;
        equal += other->second == loss;
      }
      if (common >= 3 && equal == common) return std::pair{runs[j].name, runs[i].name};
    }
  }
  return {};
}

namespace {

constexpr std::uint64_t largest_log = std::uint64_t{64} << 20;

// Takes `word` and a number after it from the front of `text`.
template <typename Number>
std::optional<Number> take_number(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return {};
  Number value{};
  const char* const begin = text.data() + word.size();
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(begin, end, value);
  if (failed != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

}  // namespace

std::vector<ArenaRun> parse_arena_log(std::string_view text, const std::string& name,
                                      const std::string& metric) {
  const std::string word = " " + metric + ":";
  std::vector<ArenaRun> runs;
  std::int64_t last_step = 0;
  std::istringstream lines{std::string(text)};
  std::string whole;
  for (std::size_t number = 1; std::getline(lines, whole); ++number) {
    std::string_view line = whole;
    const auto step = take_number<std::int64_t>(line, "step:");
    const auto planned = step ? take_number<std::int64_t>(line, "/") : std::nullopt;
    if (!planned) continue;
    if (runs.empty() || *step < last_step) runs.push_back({name, {}, *planned});
    last_step = *step;
    if (*planned != runs.back().planned_steps) {
      throw data_error("'{}' line {}: a run of {} steps goes on as one of {}; its log is not whole.", name,
                       number, runs.back().planned_steps, *planned);
    }
    if (!line.starts_with(" val_loss:")) continue;
    line.remove_prefix(std::min(line.find(word), line.size()));
    const auto loss = take_number<double>(line, word);
    if (!loss || (!line.empty() && line.front() != ' ' && line.front() != '\r')) {
      throw data_error("'{}' line {}: the validation has no number '{}'; name another with --metric.", name,
                       number, metric);
    }
    const double value = std::isfinite(*loss) ? *loss : std::numeric_limits<double>::quiet_NaN();
    const auto [at, is_new] = runs.back().losses.emplace(*step, value);
    if (!is_new && at->second != value) {
      throw data_error("'{}' line {}: step {} of a run has two losses, {:.5f} and {:.5f}.", name, number,
                       *step, at->second, value);
    }
  }
  std::erase_if(runs, [](const ArenaRun& run) { return run.losses.empty(); });
  if (runs.empty()) {
    throw data_error("'{}' has no line 'step:S/N val_loss:X', so it is no log of the optimiser benchmark.",
                     name);
  }
  for (std::size_t i = 0; runs.size() > 1 && i < runs.size(); ++i)
    runs[i].name = fmt::format("{} run {}", name, i + 1);
  return runs;
}

std::vector<ArenaRun> runs_of_arena_logs(const std::vector<std::string>& paths, const std::string& metric) {
  std::vector<ArenaRun> runs;
  for (const std::string& path : paths) {
    for (ArenaRun& run : parse_arena_log(read_file(path, largest_log), path, metric)) {
      runs.push_back(std::move(run));
      const std::int64_t first = runs.front().planned_steps, planned = runs.back().planned_steps;
      if (planned == first) continue;
      throw data_error(
          "'{}' has a run over {} steps and '{}' one over {}, so they are not runs of one result.",
          paths.front(), first, path, planned);
    }
  }
  return runs;
}

}  // namespace mulligan::stats
