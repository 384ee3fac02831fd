#include "tools/stats/arena_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::stats {
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

ArenaLog parse_arena_log(std::string_view text, const std::string& name, const std::string& metric) {
  const std::string word = " " + metric + ":";
  const std::size_t code_end = text.find("\n====");
  ArenaLog log;
  if (code_end != std::string_view::npos) log.code = text.substr(0, code_end);
  std::int64_t last_step = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto step = take_number<std::int64_t>(line, "step:");
    const auto planned = step ? take_number<std::int64_t>(line, "/") : std::nullopt;
    if (!planned) continue;
    if (log.runs.empty() || *step < last_step) {
      log.runs.emplace_back();
      log.planned_steps.push_back(*planned);
    }
    last_step = *step;
    if (*planned != log.planned_steps.back()) {
      throw data_error("'{}' line {}: a run of {} steps goes on as one of {}; its log is not whole.", name,
                       number, log.planned_steps.back(), *planned);
    }
    if (!line.starts_with(" val_loss:")) continue;
    line.remove_prefix(std::min(line.find(word), line.size()));
    const auto loss = take_number<double>(line, word);
    if (!loss || (!line.empty() && line.front() != ' ' && line.front() != '\r')) {
      throw data_error("'{}' line {}: the validation has no number '{}'; name another with --metric.", name,
                       number, metric);
    }
    const double value = std::isfinite(*loss) ? *loss : std::numeric_limits<double>::quiet_NaN();
    const auto [at, is_new] = log.runs.back().losses.emplace(*step, value);
    if (!is_new && at->second != value) {
      throw data_error("'{}' line {}: step {} of a run has two losses, {:.5f} and {:.5f}.", name, number,
                       *step, at->second, value);
    }
  }
  for (std::size_t i = log.runs.size(); i-- > 0;) {
    if (!log.runs[i].losses.empty()) continue;
    log.runs.erase(log.runs.begin() + static_cast<std::ptrdiff_t>(i));
    log.planned_steps.erase(log.planned_steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (log.runs.empty()) {
    throw data_error("'{}' has no line 'step:S/N val_loss:X', so it is no log of the optimiser benchmark.",
                     name);
  }
  for (std::size_t i = 0; i < log.runs.size(); ++i)
    log.runs[i].name = log.runs.size() == 1 ? name : fmt::format("{} run {}", name, i + 1);
  return log;
}

std::vector<ArenaRun> runs_of_arena_logs(const std::vector<std::string>& paths, const std::string& metric,
                                         std::vector<std::string>& notes) {
  std::vector<ArenaRun> runs;
  std::optional<ArenaLog> first;
  std::size_t other_code = 0;
  for (const std::string& path : paths) {
    ArenaLog log = parse_arena_log(read_file(path, largest_log), path, metric);
    if (!first) first = log;
    other_code += log.code != first->code;
    for (const std::int64_t planned : log.planned_steps) {
      if (planned == first->planned_steps.front()) continue;
      throw data_error(
          "'{}' has a run over {} steps and '{}' one over {}, so they are not runs of one result.",
          paths.front(), first->planned_steps.front(), path, planned);
    }
    runs.insert(runs.end(), std::make_move_iterator(log.runs.begin()),
                std::make_move_iterator(log.runs.end()));
  }
  if (other_code > 0) {
    notes.push_back(fmt::format("the code in {} of the {} logs is not that of '{}'", other_code, paths.size(),
                                paths.front()));
  }
  return runs;
}

}  // namespace mulligan::stats
