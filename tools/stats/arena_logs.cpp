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

class ArenaLogReader {
 public:
  ArenaLogReader(const std::string& name, const std::string& metric)
      : name_(name), metric_(metric), word_(" " + metric + ":") {}

  void take(std::string_view line) {
    ++line_;
    const auto step = take_number<std::int64_t>(line, "step:");
    if (!step) return;
    const auto planned = take_number<std::int64_t>(line, "/");
    if (!planned) return;
    if (log_.runs.empty() || *step < last_step_) begin(*planned);
    last_step_ = *step;
    if (*planned != log_.planned_steps.back()) {
      throw data_error("'{}' line {}: a run of {} steps goes on as one of {}; its log is not whole.", name_,
                       line_, log_.planned_steps.back(), *planned);
    }
    if (!line.starts_with(" val_loss:")) return;
    line.remove_prefix(std::min(line.find(word_), line.size()));
    const auto loss = take_number<double>(line, word_);
    if (!loss || (!line.empty() && line.front() != ' ' && line.front() != '\r')) {
      throw data_error("'{}' line {}: the validation has no number '{}'; name another with --metric.", name_,
                       line_, metric_);
    }
    const double value = std::isfinite(*loss) ? *loss : std::numeric_limits<double>::quiet_NaN();
    const auto [at, is_new] = log_.runs.back().losses.emplace(*step, value);
    if (!is_new && at->second != value) {
      throw data_error("'{}' line {}: step {} of a run has two losses, {:.5f} and {:.5f}.", name_, line_,
                       *step, at->second, value);
    }
  }

  ArenaLog finish() {
    ArenaLog kept;
    for (std::size_t i = 0; i < log_.runs.size(); ++i) {
      if (log_.runs[i].losses.empty()) continue;
      kept.runs.push_back(std::move(log_.runs[i]));
      kept.planned_steps.push_back(log_.planned_steps[i]);
    }
    if (kept.runs.empty()) {
      throw data_error("'{}' has no line 'step:S/N val_loss:X', so it is no log of the optimiser benchmark.",
                       name_);
    }
    for (std::size_t i = 0; i < kept.runs.size(); ++i)
      kept.runs[i].name = kept.runs.size() == 1 ? name_ : fmt::format("{} run {}", name_, i + 1);
    return kept;
  }

 private:
  void begin(std::int64_t planned) {
    log_.runs.emplace_back();
    log_.planned_steps.push_back(planned);
  }

  const std::string& name_;
  const std::string& metric_;
  std::string word_;
  ArenaLog log_;
  std::int64_t last_step_ = 0;
  std::size_t line_ = 0;
};

}  // namespace

ArenaLog parse_arena_log(std::string_view text, const std::string& name, const std::string& metric) {
  ArenaLogReader reader(name, metric);
  const std::size_t code_end = text.find("\n====");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    reader.take(text.substr(begin, end - begin));
    begin = end + 1;
  }
  ArenaLog log = reader.finish();
  if (code_end != std::string_view::npos) log.code = text.substr(0, code_end);
  return log;
}

ArenaLog read_arena_log(const std::filesystem::path& path, const std::string& metric) {
  return parse_arena_log(read_file(path, largest_log), path.string(), metric);
}

std::vector<ArenaRun> runs_of_arena_logs(const std::vector<std::string>& paths, const std::string& metric,
                                         std::vector<std::string>& notes) {
  std::vector<ArenaRun> runs;
  std::optional<ArenaLog> first;
  std::size_t other_code = 0;
  for (const std::string& path : paths) {
    ArenaLog log = read_arena_log(path, metric);
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
