#include "tools/report_page/run_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"
#include "tools/report_page/bar_chart.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_curves.h"

namespace mulligan::report {
namespace {

std::string tile(std::string_view what, const std::string& value) {
  return fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b></div>\n", escape(what), escape(value));
}
void add_tile(std::string& tiles, std::string_view what, std::optional<double> value, auto&& text) {
  if (value) tiles += tile(what, text(*value));
}

std::string count_text(double value) {
  return std::isfinite(value) && std::abs(value) < 9e15 ? grouped(std::llround(value)) : short_number(value);
}
std::string bpb_text(double value) {
  return fixed(value, 5);
}

// "" of a run of one process.
std::string ranks_text(const TrainingResult& result) {
  const auto counted = [](double number, const char* what) {
    return fmt::format("{} {}{}", count_text(number), what, number == 1 ? "" : "s");
  };
  const double restarts = result.restarts.value_or(0);
  if (result.ranks.value_or(1) <= 1 && restarts == 0) return {};
  std::string text = fmt::format("{} on {}, started by {}", counted(result.ranks.value_or(1), "rank"),
                                 counted(result.nodes.value_or(1), "node"), result.launcher);
  if (restarts > 0) text += fmt::format(", {} after a failure", counted(restarts, "restart"));
  return text;
}

// "" where it was not asked for.
std::string energy_text(const TrainingResult& result) {
  if (!result.energy_asked) return {};
  std::string text = "not measured";
  if (result.joules) {
    text = fmt::format("{} J by {}", short_number(*result.joules), fmt::join(result.energy_counters, ", "));
    if (result.joules_per_token)
      text += fmt::format(", {} mJ per token", short_number(1e3 * *result.joules_per_token));
  }
  for (const std::string& why : result.energy_absent) text += "; " + why;
  return text;
}

}  // namespace

std::string doubts_html(const std::vector<std::string>& doubts) {
  std::string html;
  for (const std::string& doubt : doubts)
    html += fmt::format("<p class=\"warning\">{}: its figures are not to be trusted.</p>\n", escape(doubt));
  return html;
}

std::string summary_section(const RunRecord& run) {
  std::string tiles, html;
  if (const auto& result = run.result) {
    if (result->val_bpb) {
      tiles += tile("val_bpb", bpb_text(*result->val_bpb));
    } else {
      add_tile(tiles, result->val_masked ? "val_loss of masked tokens, nats" : "val_loss, nats",
               result->val_loss_nats, bpb_text);
    }
  }
  if (const EvaluationRecord* quantized = run.quantized())
    tiles += tile("val_bpb, quantised", bpb_text(quantized->val_bpb));
  if (run.ttt)
    add_tile(tiles, run.ttt->bits ? "val_bpb, test-time training" : "nats, test-time training",
             run.ttt->with_bpb, bpb_text);
  if (run.quantize) tiles += tile("artifact", bytes_text(run.quantize->artifact_bytes));
  if (const auto& result = run.result) {
    add_tile(tiles, "training steps", result->steps, count_text);
    add_tile(tiles, "tokens trained on", result->tokens, count_text);
    add_tile(tiles, "tokens per second", result->tokens_per_second, count_text);
    add_tile(tiles, "parameters", result->parameters, count_text);
    add_tile(tiles, "peak memory", result->peak_memory_bytes, bytes_text);
  }
  if (!run.result) {
    const std::int64_t steps = run.metrics.steps.empty() ? 0 : run.metrics.steps.back().step;
    html += fmt::format(
        "<p class=\"warning\">There is no result yet: this run was stopped, or is still going on. Its "
        "last report is of step {}.</p>\n",
        grouped(steps));
  } else {
    for (const std::string& limit : run.ledger ? run.ledger->broken : run.result->broken_limits) {
      html += fmt::format("<p class=\"warning\">{}</p>\n", escape(limit));
    }
  }
  html += doubts_html(run.doubts);
  for (const std::string& finding : run.result ? run.result->doctor : std::vector<std::string>())
    html += fmt::format("<p class=\"warning\">{}</p>\n", escape(finding));
  if (run.result && run.result->restarts.value_or(0) > 0) {
    html +=
        "<p class=\"warning\">The ranks were restarted after a failure. Seconds after the last checkpoint before it are not booked.</p>\n";
  }
  if (run.metrics.torn) {
    html +=
        note("The last line of metrics.jsonl is unfinished, since its writer was killed; it is left out.");
  }
  html += "<div class=\"tiles\">\n" + tiles + "</div>\n";
  if (const auto& result = run.result) {
    std::vector<std::vector<Cell>> rows;
    const auto row = [&](const char* what, const std::string& text) {
      if (!text.empty()) rows.push_back({{what}, {text}});
    };
    row("started", result->started);
    if (result->duration_seconds) row("duration of train", seconds_text(*result->duration_seconds));
    row("host", result->host);
    row("command", result->command);
    row("ranks", ranks_text(*result));
    row("energy of training", energy_text(*result));
    row("device", result->device);
    row("made on it before the training clock + on it + after it, all ranks", result->made);
    if (!result->determinism.empty()) {
      row("determinism", fmt::format("\"{}\" was asked for; the backend keeps \"{}\"", result->determinism,
                                     result->backend_promise));
    }
    row("processor", result->cpu);
    row("plugins", fmt::format("{}", fmt::join(result->plugins, ", ")));
    row("built from commit", result->commit);
    row("seed", run.setting("run.seed"));
    if (result->run_loss_nats)
      row("mean training loss", fixed(*result->run_loss_nats, 5) + " nats over all steps");
    row("weights", result->weights);
    html += table({}, rows, "facts");
  }
  return section("summary", "Result", html);
}

namespace {

// One row per phase; nothing where the run has one.
std::string phase_table(const RunRecord& run) {
  std::vector<std::vector<Cell>> rows;
  const std::vector<PhaseRecord>& starts = run.metrics.phase_starts;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const StepRecord* last = nullptr;  // the last reported step of the phase
    for (const StepRecord& step : run.metrics.steps) {
      const bool here =
          step.step > starts[i].step && (i + 1 == starts.size() || step.step <= starts[i + 1].step);
      if (here) last = &step;
    }
    rows.push_back({{starts[i].phase},
                    {starts[i].way},
                    {fmt::format("{}", starts[i].step + 1), true},
                    {fmt::format("{:.1f} %", 100 * starts[i].budget_fraction), true},
                    {last ? fmt::format("{:.4f}", last->window_loss_nats) : "-", true},
                    {last ? count_text(last->tokens_per_second) : "-", true}});
  }
  if (rows.empty()) return {};
  return table({"phase", "steps are made", "first step", "budget spent", "loss at its end, nats", "tokens/s"},
               rows);
}

// "adamw 0.001 -> 0.0005": by optimiser.
std::string rates_text(const PhaseSwitchRecord& taken) {
  std::string text;
  for (const auto& [name, after] : taken.lr_after) {
    const auto before = std::ranges::find(taken.lr_before, name, [](const auto& pair) { return pair.first; });
    text += fmt::format("{}{} {:.4g} -> {:.4g}", text.empty() ? "" : ", ", name,
                        before == taken.lr_before.end() ? std::nan("") : before->second, after);
  }
  return text;
}

// One row per phase that took over from another and was verified.
std::string switch_table(const RunRecord& run) {
  std::vector<std::vector<Cell>> rows;
  for (const PhaseSwitchRecord& taken : run.metrics.phase_switches) {
    rows.push_back(
        {{fmt::format("{} to {}", taken.from, taken.to)},
         {fmt::format("{}", taken.step), true},
         {rates_text(taken)},
         {fmt::format("{:.6f}", taken.loss_before_nats), true},
         {fmt::format("{:+.2e}", taken.loss_after_nats - taken.loss_before_nats), true},
         {taken.tolerance_nats ? fmt::format("{:.0e}", *taken.tolerance_nats) : "another layer order", true},
         {taken.optimizer_reset ? "emptied" : "kept"},
         {taken.state_sha256.substr(0, 12)}});
  }
  if (rows.empty()) return {};
  return table({"switch of phases", "after step", "learning rate", "loss of one row before, nats", "change",
                "at most", "optimiser states", "state, sha256"},
               rows);
}

}  // namespace

namespace {

// What a reader chooses about the curves, and what the page's script needs for it: tokens and seconds of some
// reported steps. Without the script it is not shown.
std::string curve_controls(const RunRecord& run) {
  constexpr std::size_t most = 400;
  std::string steps, tokens, seconds;
  const std::vector<StepRecord>& all = run.metrics.steps;
  const std::size_t stride = all.size() / most + 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % stride != 0 && i + 1 != all.size()) continue;
    const char* gap = steps.empty() ? "" : " ";
    steps += fmt::format("{}{}", gap, all[i].step);
    tokens += fmt::format("{}{}", gap, all[i].tokens);
    seconds += fmt::format("{}{:.2f}", gap, all[i].elapsed_seconds);
  }
  return fmt::format(
      "<div class=\"controls\" id=\"curve-controls\" hidden=\"hidden\" data-steps=\"{}\" data-tokens=\"{}\" "
      "data-seconds=\"{}\"><label>across <select id=\"curve-axis\"><option value=\"step\">steps</option>"
      "<option value=\"tokens\">tokens</option><option value=\"seconds\">seconds of "
      "training</option></select>"
      "</label> <label>smoothing <input id=\"curve-smoothing\" type=\"range\" min=\"0\" max=\"0.98\" "
      "step=\"0.01\" value=\"0\"/></label></div>\n",
      steps, tokens, seconds);
}

}  // namespace

std::string training_section(const RunRecord& run) {
  if (run.metrics.steps.empty())
    return section("training", "Training", note("No step has been reported yet."));
  return section("training", "Training",
                 phase_table(run) + switch_table(run) + curve_controls(run) +
                     charts(draw(loss_chart(run)) + draw(bpb_chart(run)) + draw(learning_rate_chart(run)) +
                            draw(gradient_norm_chart(run)) + draw(step_time_chart(run))));
}

std::string memory_section(const RunRecord& run) {
  if (!run.metrics.memory) return {};
  const MemoryRecord& memory = *run.metrics.memory;
  StackedBar whole{"memory-bar",
                   "Device memory",
                   "Persistent tensors by purpose, and the arena that all programs share.",
                   {}};
  double total = 0;
  const auto part = [&](const std::string& label, std::int64_t bytes) {
    total += static_cast<double>(bytes);
    whole.parts.push_back({label, static_cast<double>(bytes), bytes_text(static_cast<double>(bytes))});
  };
  for (const auto& [what, bytes] : memory.tensors_bytes) part(what, bytes);
  part("arena and workspace", memory.arena_bytes);
  whole.title += ", " + bytes_text(total);
  BarChart programs{"programs-bar", "Scratch of each program", "The arena is as large as the largest.", {}};
  for (const auto& [name, bytes] : memory.programs_bytes) {
    programs.bars.push_back({name, static_cast<double>(bytes), bytes_text(static_cast<double>(bytes)), {}});
  }
  std::string html = charts(draw(whole) + draw(programs));
  if (run.result && run.result->peak_memory_bytes) {
    html += note(fmt::format("The whole process held {} at its peak, host memory and libraries included.",
                             bytes_text(*run.result->peak_memory_bytes)));
  }
  return section("memory", "Memory plan", html);
}

std::string time_section(const RunRecord& run) {
  NamedNumbers phases;
  if (run.result) phases = run.result->phase_seconds;
  if (run.ledger) phases = run.ledger->phase_seconds;
  if (phases.empty()) return {};
  BarChart seconds{"time-bar", "Seconds by phase", "", {}};
  for (const auto& [phase, value] : phases) seconds.bars.push_back({phase, value, seconds_text(value), {}});
  BarChart budgets{"budget-bar", "Budgets", "The share that was used; the line is the whole budget.", {}};
  const auto budget = [&](const std::string& label, double used, double limit, const std::string& text) {
    budgets.bars.push_back({label, used / limit, text, 1.0});
  };
  const double training = run.number("train.budget_seconds");
  for (const auto& [phase, value] : phases) {
    if (phase != "train" || training <= 0) continue;
    budget("train.budget_seconds", value, training, seconds_text(value) + " of " + seconds_text(training));
  }
  if (run.ledger) {
    for (const LedgerResult::Budget& b : run.ledger->budgets) {
      const bool bytes = b.key.find("bytes") != std::string::npos;
      budget(fmt::format("{} ({})", b.key, b.what), b.used, b.limit,
             bytes ? bytes_text(b.used) + " of " + bytes_text(b.limit)
                   : seconds_text(b.used) + " of " + seconds_text(b.limit));
    }
  }
  return section("time", "Time and budgets",
                 charts(draw(seconds) + (budgets.bars.empty() ? "" : draw(budgets))));
}

std::string scores_section(const RunRecord& run) {
  std::vector<std::vector<Cell>> rows;
  const auto row = [&](const std::string& what, const std::string& how, double nats, double bpb,
                       double tokens, double bytes) {
    rows.push_back({{what},
                    {how},
                    {bytes > 0 ? bpb_text(bpb) : "", true},
                    {std::isfinite(nats) ? fixed(nats, 5) : "", true},
                    {count_text(tokens), true},
                    {count_text(bytes), true}});
  };
  if (run.result && run.result->val_loss_nats) {
    const TrainingResult& result = *run.result;
    row("weights.safetensors",
        result.val_masked ? "at the end of training, masked tokens" : "at the end of training",
        *result.val_loss_nats, result.val_bpb.value_or(NAN), result.val_tokens.value_or(0),
        result.val_bytes.value_or(0));
  }
  for (const EvaluationRecord& e : run.evaluations) {
    row(e.weights, e.mode, e.val_loss_nats, e.val_bpb, static_cast<double>(e.val_tokens),
        static_cast<double>(e.val_bytes));
  }
  std::vector<std::vector<Cell>> trials;
  for (const TrialRecord& trial : run.trials) {
    std::string changes;
    for (const TrialRecord::Change& change : trial.changes) {
      changes += fmt::format("{}{} = {}", changes.empty() ? "" : ", ", change.key,
                             change.trial.empty() ? "(none)" : change.trial);
    }
    const EvaluationRecord& score = trial.score;
    trials.push_back({{trial.name},
                      {score.weights + ", " + score.mode},
                      {changes},
                      {score.val_bytes > 0 ? bpb_text(score.val_bpb) : "", true},
                      {std::isfinite(score.val_loss_nats) ? fixed(score.val_loss_nats, 5) : "", true},
                      {count_text(static_cast<double>(score.val_tokens)), true}});
  }
  // What a score is of, next to it.
  std::string of;
  for (const char* key : {"data.validation", "data.tokenizer"}) {
    if (const std::string value = run.setting(key); !value.empty()) {
      of += fmt::format("{}{}: {}", of.empty() ? "" : ", ", key, value);
    }
  }
  if (run.result && !run.result->byte_rule.empty())
    of += fmt::format("{}bits per byte of the {}", of.empty() ? "" : "; ", run.result->byte_rule);
  if (!of.empty()) of = note("Scored: " + of + ".");
  if (run.result && run.result->overlap && run.result->overlap_copied) {
    of += note(fmt::format(
        "Of the validation text {:.3g} % stands in the training data as it is, and {:.3g} % with changes.",
        100 * *run.result->overlap_copied, 100 * *run.result->overlap));
  }
  const std::string trial_table =
      trials.empty()
          ? ""
          : note(
                "Trials: scored with other settings than the run's. They are not scores of this "
                "run, and no comparison reads them.") +
                table({"trial", "what", "other settings", "val_bpb", "val_loss, nats", "tokens"}, trials);
  if (rows.empty() && trials.empty()) return {};
  return section(
      "scores", "Scores",
      of + table({"weights", "how", "val_bpb", "val_loss, nats", "tokens", "bytes"}, rows) + trial_table);
}

std::string artifact_section(const RunRecord& run) {
  if (!run.quantize) return {};
  const QuantizeResult& quantize = *run.quantize;
  const std::optional<double> limit =
      quantize.limit_bytes > 0 ? std::optional(quantize.limit_bytes) : std::nullopt;
  BarChart chart{"artifact-bar",
                 "Bytes",
                 limit ? fmt::format("The line is the limit, {} bytes.", count_text(*limit))
                       : "No limit is set (ledger.artifact_bytes).",
                 {}};
  const auto bar = [&](const char* what, double bytes) {
    chart.bars.push_back({what, bytes, count_text(bytes), limit});
  };
  bar("artifact", quantize.artifact_bytes);
  if (quantize.evaluation_source_bytes)
    bar("artifact + code of an evaluation", quantize.artifact_bytes + *quantize.evaluation_source_bytes);
  if (quantize.source_bytes) bar("artifact + all source", quantize.artifact_bytes + *quantize.source_bytes);
  if (quantize.binary_bytes) bar("artifact + binary", quantize.artifact_bytes + *quantize.binary_bytes);
  std::vector<std::vector<Cell>> rows;
  for (const QuantizeResult::Tensor& tensor : quantize.tensors) {
    rows.push_back({{tensor.name},
                    {tensor.shape},
                    {tensor.format},
                    {count_text(tensor.bytes), true},
                    {fixed(tensor.bits_per_element, 2), true}});
  }
  return section("artifact", "Artifact",
                 charts(draw(chart)) + "<details><summary>Every tensor</summary>\n" +
                     table({"tensor", "shape", "format", "bytes", "bits/element"}, rows) + "</details>\n");
}

std::string ttt_section(const RunRecord& run) {
  if (!run.ttt_invalid.empty()) return section("ttt", "Test-time training", note(run.ttt_invalid));
  if (!run.ttt) return {};
  const TttRecord& ttt = *run.ttt;
  std::string html;
  if (ttt.with_bpb && ttt.compared_bpb && ttt.without_bpb && ttt.evaluation_bpb) {
    html += fmt::format(
        "<p>{} {} with test-time training. The same windows without adaptation: {}, a gain of {}. The evaluation: "
        "{}.</p>\n",
        bpb_text(*ttt.with_bpb), score_unit(ttt), bpb_text(*ttt.without_bpb),
        bpb_text(*ttt.without_bpb - *ttt.compared_bpb), bpb_text(*ttt.evaluation_bpb));
  }
  if (!ttt.weights.empty()) html += note("Scored: " + ttt.weights);
  if (!ttt.made.empty())
    html += note("Made on the device before scoring + meanwhile + after it, all ranks: " + ttt.made);
  if (!ttt.transform.empty()) {
    html += fmt::format("<p>Scored through the transform {}, which learns in {} order{}.</p>\n",
                        escape(ttt.transform), escape(ttt.transform_order),
                        ttt.untransformed_bpb ? fmt::format("; without it the same model scores {} {}",
                                                            bpb_text(*ttt.untransformed_bpb), score_unit(ttt))
                                              : "");
  }
  if (ttt.contested) {
    html +=
        "<p class=\"warning\">Contested: the transform knew documents "
        "that were scored later, as in the published record.</p>\n";
  }
  if (ttt.collapsed_at_batch) {
    html += fmt::format(
        "<p class=\"warning\">After batch {} the score was worse than without test-time training{}.</p>\n",
        *ttt.collapsed_at_batch + 1, ttt.fell_back ? "; the rest was scored without adapters" : "");
  }
  std::string figures;
  if (!ttt.batches.empty()) {
    figures += draw(ttt_score_chart(ttt));
    if (const LineChart drift = ttt_drift_chart(ttt); !drift.curves.empty()) figures += draw(drift);
  }
  BarChart gains{"ttt-gain-bar",
                 "Gain by document length",
                 fmt::format("In {}; right is better with test-time training.", score_unit(ttt)),
                 {}};
  for (const TttRecord::Bin& bin : ttt.bins) {
    const double gain = bin.without - bin.with;
    if (!std::isfinite(gain)) continue;  // not scored without it
    gains.bars.push_back({fmt::format("{} to {} tokens ({})", count_text(bin.shortest),
                                      count_text(bin.longest), count_text(bin.documents)),
                          gain,
                          fixed(gain, 5),
                          {}});
  }
  if (!gains.bars.empty()) figures += draw(gains);
  for (const TttRecord::Phase& phase : ttt.phases) {
    LineChart chart{
        fmt::format("ttt-phase-{:.0f}-curve", phase.number),
        fmt::format("Base model, phase {:.0f}", phase.number),
        fmt::format("Trained on {} scored documents ({} tokens), {}.", count_text(phase.documents),
                    count_text(phase.tokens), seconds_text(phase.seconds)),
        "step",
        "nats per token",
        false,
        {},
        {}};
    chart.curves.push_back({"loss before the update", {}, 0, Stroke::solid});
    for (std::size_t i = 0; i < phase.step_loss_nats.size(); ++i) {
      chart.curves[0].points.push_back({static_cast<double>(i + 1), phase.step_loss_nats[i]});
    }
    figures += draw(chart);
  }
  return section("ttt", "Test-time training", html + charts(figures));
}

std::string configuration_section(const RunRecord& run) {
  if (run.settings.empty()) return {};
  std::vector<std::vector<Cell>> all, chosen;
  for (const ResolvedSetting& setting : run.settings) {
    all.push_back({{setting.key}, {setting.value}, {setting.origin}});
    if (setting.origin != "default") chosen.push_back(all.back());
  }
  const std::vector<std::string> head{"key", "value", "origin"};
  return section("configuration", "Configuration",
                 note("Keys that were set or derived; all others have their defaults.") +
                     table(head, chosen, "settings") +
                     fmt::format("<details><summary>All {} keys</summary>\n", all.size()) +
                     table(head, all, "settings") + "</details>\n");
}

std::string missing_text(const RunRecord& run) {
  const std::string place = run.files.directory.string();
  std::vector<std::string> ways;
  const auto way = [&](bool there, const std::string& command) {
    if (!there) ways.push_back(command);
  };
  const bool weights = run.result.has_value();
  if (!weights) return {};
  way(run.quantize.has_value() || run.setting("quantize.plugin").empty(),
      fmt::format("There is no artifact yet: mulligan quantize {}.", place));
  way(run.ttt.has_value() || !run.ttt_invalid.empty() || run.setting("ttt.adapters.plugin").empty(),
      fmt::format("No score with test-time training yet: mulligan ttt {0} --output {0}.", place));
  way(!run.samples.empty(), fmt::format("No sample of text yet: mulligan generate {} --keep.", place));
  return fmt::format("{}", fmt::join(ways, " "));
}

}  // namespace mulligan::report
