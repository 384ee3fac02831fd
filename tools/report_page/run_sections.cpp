#include "tools/report_page/run_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"

namespace mulligan::report {

std::string made_text(const ResultValue& result) {
  std::vector<std::string> all;
  for (auto [name, count] : result.items("made_on_device")) {
    std::ranges::replace(name, '_', ' ');
    all.push_back(fmt::format("{} {} + {} + {}", name, count.number("before_clock", 0),
                              count.number("on_clock", 0), count.number("after_clock", 0)));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

namespace {

// "" of a run of one process.
std::string ranks_text(const ResultValue& result) {
  const auto counted = [](double number, const char* what) {
    return fmt::format("{} {}{}", count_text(number), what, number == 1 ? "" : "s");
  };
  const double ranks = result.number("ranks", 1), restarts = result.number("restarts", 0);
  if (ranks <= 1 && restarts == 0) return {};
  std::string text = fmt::format("{} on {}, started by {}", counted(ranks, "rank"),
                                 counted(result.number("nodes", 1), "node"), result.text("launcher"));
  if (restarts > 0) text += fmt::format(", {} after a failure", counted(restarts, "restart"));
  return text;
}

// "" where it was not asked for.
std::string energy_text(const ResultValue& energy) {
  if (!energy) return {};
  std::string text = "not measured";
  if (const auto joules = energy.number("joules")) {
    text = fmt::format("{} J by {}", short_number(*joules), fmt::join(energy.texts("counters"), ", "));
    if (const auto each = energy.number("joules_per_token"))
      text += fmt::format(", {} mJ per token", short_number(1e3 * *each));
  }
  for (const std::string& why : energy.texts("absent")) text += "; " + why;
  return text;
}

std::string determinism_text(const ResultValue& determinism) {
  if (determinism.text("level").empty()) return {};
  return fmt::format("\"{}\" was asked for; the backend keeps \"{}\"", determinism.text("level"),
                     determinism.text("backend"));
}

std::string plugins_text(const ResultValue& result) {
  std::vector<std::string> names;
  for (const ResultValue& plugin : result.list("plugins"))
    names.push_back(fmt::format("{} {}", plugin.text("kind"), plugin.text("name")));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string tiles(const RunRecord& run) {
  const bool bits = run.figure("val_bpb").has_value(), masked = run.result.flag("val_masked");
  struct Tile {
    std::string_view what;
    std::optional<double> value;
    std::string (*text)(double);
  };
  const Tile all[] = {{bits     ? "val_bpb"
                       : masked ? "val_loss of masked tokens, nats"
                                : "val_loss, nats",
                       run.figure(bits ? "val_bpb" : "val_loss_nats"), bpb_text},
                      {"val_bpb, quantised", run.figure("quantised_bpb"), bpb_text},
                      {scores_bits(run.ttt) ? "val_bpb, test-time training" : "nats, test-time training",
                       ttt_score(run.ttt), bpb_text},
                      {"artifact", run.figure("artifact_bytes"), bytes_text},
                      {"training steps", run.figure("steps"), count_text},
                      {"tokens trained on", run.figure("tokens"), count_text},
                      {"tokens per second", run.figure("tokens_per_second"), count_text},
                      {"parameters", run.figure("parameters"), count_text},
                      {"peak memory", run.figure("peak_memory_bytes"), bytes_text}};
  std::string html;
  for (const auto& [what, value, text] : all) {
    if (value)
      html += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b></div>\n", what, escape(text(*value)));
  }
  return "<div class=\"tiles\">\n" + html + "</div>\n";
}

std::string facts(const RunRecord& run) {
  const ResultValue& result = run.result;
  const auto duration = result.number("duration_seconds"),
             mean = result.number("train_loss/train_loss_run_nats");
  Table table{{},
              "",
              {
                  {"started", result.text("started")},
                  {"duration of train", duration ? seconds_text(*duration) : ""},
                  {"host", result.text("host")},
                  {"command", result.text("command")},
                  {"ranks", ranks_text(result)},
                  {"energy of training", energy_text(result["energy"])},
                  {"device", result.text("device")},
                  {"made on it before the training clock + on it + after it, all ranks", made_text(result)},
                  {"determinism", determinism_text(result["determinism"])},
                  {"processor", result.text("cpu")},
                  {"plugins", plugins_text(result)},
                  {"built from commit", result.text("commit")},
                  {"seed", run.setting("run.seed")},
                  {"mean training loss", mean ? bpb_text(*mean) + " nats over all steps" : ""},
                  {"weights", result.text("weights")},
              }};
  std::erase_if(table.rows, [](const auto& row) { return row[1].empty(); });
  return html_of(table, "facts");
}

std::string summary(const RunRecord& run) {
  const ResultValue& result = run.result;
  std::string html;
  if (!result) {
    html += warning(fmt::format(
        "There is no result yet: this run was stopped, or is still going on. Its last report is of step {}.",
        grouped(run.metrics.steps.empty() ? 0 : run.metrics.steps.back().step)));
  }
  for (const std::string& limit : run.ledger ? run.ledger.texts("broken") : result.texts("broken_limits"))
    html += warning(limit);
  html += doubts_html(run);
  for (const ResultValue& finding : result["doctor"].list("findings")) {
    const std::string verdict = finding.text("verdict");
    if (verdict != "FAIL" && verdict != "WARN") continue;
    html += warning(fmt::format("Doctor, {} ({}): {}; {}.", finding.text("id"), finding.text("title"),
                                finding.text("message"), finding.text("hint")));
  }
  if (result.number("restarts", 0) > 0) {
    html += warning(
        "The ranks were restarted after a failure. Seconds after the last checkpoint before it are not booked.");
  }
  if (run.metrics.torn)
    html +=
        note("The last line of metrics.jsonl is unfinished, since its writer was killed; it is left out.");
  return html + tiles(run) + (result ? facts(run) : "");
}

// One row per phase.
std::string phase_table(const RunRecord& run) {
  Table table{{"phase", "steps are made", "first step", "budget spent", "loss at its end, nats", "tokens/s"},
              "llr"};
  const std::vector<PhaseRecord>& starts = run.metrics.phase_starts;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const StepRecord* last = nullptr;  // the last reported step of the phase
    for (const StepRecord& step : run.metrics.steps) {
      if (step.step > starts[i].step && (i + 1 == starts.size() || step.step <= starts[i + 1].step))
        last = &step;
    }
    table.rows.push_back({starts[i].phase, starts[i].way, fmt::format("{}", starts[i].step + 1),
                          fmt::format("{:.1f} %", 100 * starts[i].budget_fraction),
                          last ? fmt::format("{:.4f}", last->window_loss_nats) : "-",
                          last ? count_text(last->tokens_per_second) : "-"});
  }
  return table.rows.empty() ? "" : html_of(table);
}

// "adamw 0.001 -> 0.0005": by optimiser.
std::string rates_text(const PhaseSwitchRecord& taken) {
  std::vector<std::string> rates;
  for (const auto& [name, after] : taken.lr_after) {
    const auto before = std::ranges::find(taken.lr_before, name, [](const auto& pair) { return pair.first; });
    rates.push_back(fmt::format("{} {:.4g} -> {:.4g}", name,
                                before == taken.lr_before.end() ? std::nan("") : before->second, after));
  }
  return fmt::format("{}", fmt::join(rates, ", "));
}

// One row per phase that took over from another and was verified.
std::string switch_table(const RunRecord& run) {
  Table table{{"switch of phases", "after step", "learning rate", "loss of one row before, nats", "change",
               "at most", "optimiser states", "state, sha256"},
              "lrlrrrll"};
  for (const PhaseSwitchRecord& taken : run.metrics.phase_switches) {
    table.rows.push_back(
        {fmt::format("{} to {}", taken.from, taken.to), fmt::format("{}", taken.step), rates_text(taken),
         fmt::format("{:.6f}", taken.loss_before_nats),
         fmt::format("{:+.2e}", taken.loss_after_nats - taken.loss_before_nats),
         taken.tolerance_nats ? fmt::format("{:.0e}", *taken.tolerance_nats) : "another layer order",
         taken.optimizer_reset ? "emptied" : "kept", taken.state_sha256.substr(0, 12)});
  }
  return table.rows.empty() ? "" : html_of(table);
}

std::string training(const RunRecord& run) {
  if (run.metrics.steps.empty()) return note("No step has been reported yet.");
  return phase_table(run) + switch_table(run) + training_charts(run);
}

std::string time_section(const RunRecord& run) {
  BarChart seconds{"time-bar", "Seconds by phase", ""};
  BarChart budgets{"budget-bar", "Budgets", "The share that was used; the line is the whole budget."};
  const auto budget = [&](const std::string& label, double used, double limit, std::string (*text)(double)) {
    budgets.bars.push_back({label, used / limit, text(used) + " of " + text(limit), 1.0});
  };
  const auto spend = [&](const ResultValue& stage) {
    for (const auto& [phase, value] : stage.items("seconds")) {
      const double spent = value.number().value_or(NAN), limit = run.number("train.budget_seconds");
      seconds.bars.push_back({phase, spent, seconds_text(spent)});
      if (phase == "train" && limit > 0) budget("train.budget_seconds", spent, limit, seconds_text);
    }
  };
  if (!run.ledger) spend(run.result);
  for (const ResultValue& stage : run.ledger.list("stages")) spend(stage);
  if (seconds.bars.empty()) return {};
  for (const ResultValue& b : run.ledger.list("budgets")) {
    const std::string key = b.text("key");
    budget(fmt::format("{} ({})", key, b.text("what")), b.number("used", NAN), b.number("limit", NAN),
           key.find("bytes") != std::string::npos ? bytes_text : seconds_text);
  }
  return charts(draw(seconds) + draw(budgets));
}

std::string memory(const RunRecord& run) {
  if (!run.metrics.memory) return {};
  const MemoryRecord& memory = *run.metrics.memory;
  double total = 0;
  const auto add = [](BarChart& chart, const std::string& label, std::int64_t bytes) {
    chart.bars.push_back({label, static_cast<double>(bytes), bytes_text(static_cast<double>(bytes))});
  };
  BarChart whole{"memory-bar", "Device memory",
                 "Persistent tensors by purpose, and the arena that all programs share."};
  for (const auto& [what, bytes] : memory.tensors_bytes) add(whole, what, bytes);
  add(whole, "arena and workspace", memory.arena_bytes);
  for (const Bar& bar : whole.bars) total += bar.value;
  whole.title += ", " + bytes_text(total);
  BarChart programs{"programs-bar", "Scratch of each program", "The arena is as large as the largest."};
  for (const auto& [name, bytes] : memory.programs_bytes) add(programs, name, bytes);
  const auto peak = run.figure("peak_memory_bytes");
  return charts(draw(whole) + draw(programs)) +
         (peak
              ? note(fmt::format("The whole process held {} at its peak, host memory and libraries included.",
                                 bytes_text(*peak)))
              : "");
}

std::string configuration(const RunRecord& run) {
  if (run.settings.empty()) return {};
  Table all{{"key", "value", "origin"}, ""}, chosen = all;
  for (const ResolvedSetting& setting : run.settings) {
    all.rows.push_back({setting.key, setting.value, setting.origin});
    if (setting.origin != "default") chosen.rows.push_back(all.rows.back());
  }
  return note("Keys that were set or derived; all others have their defaults.") +
         html_of(chosen, "settings") +
         details(fmt::format("All {} keys", all.rows.size()), html_of(all, "settings"));
}

}  // namespace

std::span<const RunSection> run_sections() {
  static constexpr RunSection all[] = {{"summary", "Result", summary},
                                       {"training", "Training", training},
                                       {"scores", "Scores", scores},
                                       {"samples", "Samples", samples},
                                       {"artifact", "Artifact", artifact},
                                       {"ttt", "Test-time training", ttt_section},
                                       {"calibration", "Calibration", calibration},
                                       {"ensemble", "Ensemble", ensemble},
                                       {"time", "Time and budgets", time_section},
                                       {"memory", "Memory plan", memory},
                                       {"configuration", "Configuration", configuration}};
  return all;
}

std::string doubts_html(const RunRecord& run) {
  std::string html;
  for (const std::string& doubt : run.doubts) html += warning(doubt + ": its figures are not to be trusted.");
  return html;
}

}  // namespace mulligan::report
