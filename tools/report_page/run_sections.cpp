#include "tools/report_page/run_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "framework/core/printable.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_curves.h"

namespace mulligan::report {
namespace {

std::string count_text(double value) {
  return std::isfinite(value) && std::abs(value) < 9e15 ? grouped(std::llround(value)) : short_number(value);
}
std::string bpb_text(double value) {
  return fixed(value, 5);
}
std::string warning(std::string_view text) {
  return fmt::format("<p class=\"warning\">{}</p>\n", escape(text));
}
// "-" where there is no value.
Cell number_cell(const std::optional<double>& value, int digits) {
  return {value ? fixed(*value, digits) : "-", true};
}
// An empty cell for a value that is not finite.
Cell score_cell(double value) {
  return {std::isfinite(value) ? bpb_text(value) : "", true};
}
Cell count_cell(double value) {
  return {count_text(value), true};
}

// "attention plans 22 + 0 + 1, ...": made before the clock, on it and after it. "" where nothing is counted.
std::string made_text(const ResultValue& result) {
  std::vector<std::string> all;
  for (auto [name, count] : result.items("made_on_device")) {
    std::ranges::replace(name, '_', ' ');
    all.push_back(fmt::format("{} {} + {} + {}", name, count.number("before_clock", 0),
                              count.number("on_clock", 0), count.number("after_clock", 0)));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

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
    names.push_back(
        fmt::format("{} {} {}", plugin.text("kind"), plugin.text("name"), plugin.text("version")));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string tiles(const RunRecord& run) {
  std::string html;
  const auto tile = [&](std::string_view what, std::optional<double> value, std::string (*text)(double)) {
    if (value)
      html += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b></div>\n", escape(what),
                          escape(text(*value)));
  };
  const ResultValue& result = run.result;
  if (const auto bpb = result.number("val_bpb")) {
    tile("val_bpb", bpb, bpb_text);
  } else {
    tile(result.flag("val_masked") ? "val_loss of masked tokens, nats" : "val_loss, nats",
         result.number("val_loss_nats"), bpb_text);
  }
  if (const EvaluationRecord* quantized = run.quantized())
    tile("val_bpb, quantised", quantized->val_bpb, bpb_text);
  tile(scores_bits(run.ttt) ? "val_bpb, test-time training" : "nats, test-time training", ttt_score(run.ttt),
       bpb_text);
  tile("artifact", run.quantize.number("artifact_bytes"), bytes_text);
  tile("training steps", result.number("steps"), count_text);
  tile("tokens trained on", result.number("tokens"), count_text);
  tile("tokens per second", result.number("tokens_per_second"), count_text);
  tile("parameters", result.number("parameters"), count_text);
  tile("peak memory", result.number("peak_memory_bytes"), bytes_text);
  return "<div class=\"tiles\">\n" + html + "</div>\n";
}

std::string facts(const RunRecord& run) {
  const ResultValue& result = run.result;
  const auto duration = result.number("duration_seconds"),
             mean = result.number("train_loss/train_loss_run_nats");
  const std::pair<const char*, std::string> all[] = {
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
  };
  Table table;
  for (const auto& [what, text] : all) {
    if (!text.empty()) table.rows.push_back({{what}, {text}});
  }
  return html_of(table, "facts");
}

std::string summary(const RunRecord& run) {
  const ResultValue& result = run.result;
  std::string html;
  if (!result) {
    const std::int64_t steps = run.metrics.steps.empty() ? 0 : run.metrics.steps.back().step;
    html += warning(fmt::format(
        "There is no result yet: this run was stopped, or is still going on. Its last report is of step {}.",
        grouped(steps)));
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
              {}};
  const std::vector<PhaseRecord>& starts = run.metrics.phase_starts;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const StepRecord* last = nullptr;  // the last reported step of the phase
    for (const StepRecord& step : run.metrics.steps) {
      if (step.step > starts[i].step && (i + 1 == starts.size() || step.step <= starts[i + 1].step))
        last = &step;
    }
    table.rows.push_back({{starts[i].phase},
                          {starts[i].way},
                          {fmt::format("{}", starts[i].step + 1), true},
                          {fmt::format("{:.1f} %", 100 * starts[i].budget_fraction), true},
                          {last ? fmt::format("{:.4f}", last->window_loss_nats) : "-", true},
                          {last ? count_text(last->tokens_per_second) : "-", true}});
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
              {}};
  for (const PhaseSwitchRecord& taken : run.metrics.phase_switches) {
    table.rows.push_back(
        {{fmt::format("{} to {}", taken.from, taken.to)},
         {fmt::format("{}", taken.step), true},
         {rates_text(taken)},
         {fmt::format("{:.6f}", taken.loss_before_nats), true},
         {fmt::format("{:+.2e}", taken.loss_after_nats - taken.loss_before_nats), true},
         {taken.tolerance_nats ? fmt::format("{:.0e}", *taken.tolerance_nats) : "another layer order", true},
         {taken.optimizer_reset ? "emptied" : "kept"},
         {taken.state_sha256.substr(0, 12)}});
  }
  return table.rows.empty() ? "" : html_of(table);
}

// What a reader chooses about the curves, with tokens and seconds of some reported steps for the page's script.
// Without the script it is not shown.
std::string curve_controls(const RunRecord& run) {
  constexpr std::size_t most = 400;
  std::vector<std::string> steps, tokens, seconds;
  const std::vector<StepRecord>& all = run.metrics.steps;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % (all.size() / most + 1) != 0 && i + 1 != all.size()) continue;
    steps.push_back(fmt::format("{}", all[i].step));
    tokens.push_back(fmt::format("{}", all[i].tokens));
    seconds.push_back(fmt::format("{:.2f}", all[i].elapsed_seconds));
  }
  return fmt::format(
      "<div class=\"controls\" id=\"curve-controls\" hidden=\"hidden\" data-steps=\"{}\" data-tokens=\"{}\" "
      "data-seconds=\"{}\"><label>across <select id=\"curve-axis\"><option value=\"step\">steps</option>"
      "<option value=\"tokens\">tokens</option><option value=\"seconds\">seconds of training</option></select>"
      "</label> <label>smoothing <input id=\"curve-smoothing\" type=\"range\" min=\"0\" max=\"0.98\" "
      "step=\"0.01\" value=\"0\"/></label></div>\n",
      fmt::join(steps, " "), fmt::join(tokens, " "), fmt::join(seconds, " "));
}

std::string training(const RunRecord& run) {
  if (run.metrics.steps.empty()) return note("No step has been reported yet.");
  return phase_table(run) + switch_table(run) + curve_controls(run) +
         charts(draw(loss_chart(run)) + draw(bpb_chart(run)) + draw(learning_rate_chart(run)) +
                draw(gradient_norm_chart(run)) + draw(step_time_chart(run)));
}

// "original text: 1.23450 by 1,000 bytes; tokenizer's text: 1.12340 by 1,100 bytes", the score's own first.
std::string byte_rule_text(const ResultValue& result) {
  const std::string rule = result.text("byte_rule");
  std::string own, other;
  for (const auto& [name, figures] : result.items("by_byte_rule")) {
    (name == rule ? own : other) +=
        fmt::format("{}: {} by {} bytes", name == "original" ? "original text" : "tokenizer's text",
                    bpb_text(figures.number("bpb", NAN)), count_text(figures.number("bytes", 0)));
  }
  return rule.empty() ? "" : own + (other.empty() ? "" : "; " + other);
}

// What a score is of.
std::string scored_notes(const RunRecord& run) {
  std::vector<std::string> of;
  for (const char* key : {"data.validation", "data.tokenizer"}) {
    if (const std::string value = run.setting(key); !value.empty())
      of.push_back(fmt::format("{}: {}", key, value));
  }
  std::string text = fmt::format("{}", fmt::join(of, ", "));
  if (const std::string rule = byte_rule_text(run.result); !rule.empty())
    text += fmt::format("{}bits per byte of the {}", text.empty() ? "" : "; ", rule);
  std::string html = text.empty() ? "" : note("Scored: " + text + ".");
  const ResultValue overlap = run.result["data/overlap"];
  const auto share = overlap.number("share"), copied = overlap.number("copied");
  if (share && copied) {
    html += note(fmt::format(
        "Of the validation text {:.3g} % stands in the training data as it is, and {:.3g} % with changes.",
        100 * *copied, 100 * *share));
  }
  return html;
}

std::string scores(const RunRecord& run) {
  Table own{{"weights", "how", "val_bpb", "val_loss, nats", "tokens", "bytes"}, {}};
  const auto row = [&](const std::string& what, const std::string& how, double nats, double bpb,
                       double tokens, double bytes) {
    own.rows.push_back({{what},
                        {how},
                        {bytes > 0 ? bpb_text(bpb) : "", true},
                        score_cell(nats),
                        count_cell(tokens),
                        count_cell(bytes)});
  };
  const ResultValue& result = run.result;
  if (const auto nats = result.number("val_loss_nats")) {
    row("weights.safetensors",
        result.flag("val_masked") ? "at the end of training, masked tokens" : "at the end of training", *nats,
        result.number("val_bpb", NAN), result.number("val_tokens", 0), result.number("val_bytes", 0));
  }
  for (const EvaluationRecord& e : run.evaluations) {
    row(e.weights, e.mode, e.val_loss_nats, e.val_bpb, static_cast<double>(e.val_tokens),
        static_cast<double>(e.val_bytes));
  }
  Table trials{{"trial", "what", "other settings", "val_bpb", "val_loss, nats", "tokens"}, {}};
  for (const TrialRecord& trial : run.trials) {
    std::vector<std::string> changes;
    for (const TrialRecord::Change& change : trial.changes)
      changes.push_back(fmt::format("{} = {}", change.key, change.trial.empty() ? "(none)" : change.trial));
    const EvaluationRecord& score = trial.score;
    trials.rows.push_back({{trial.name},
                           {score.weights + ", " + score.mode},
                           {fmt::format("{}", fmt::join(changes, ", "))},
                           {score.val_bytes > 0 ? bpb_text(score.val_bpb) : "", true},
                           score_cell(score.val_loss_nats),
                           count_cell(static_cast<double>(score.val_tokens))});
  }
  if (own.rows.empty() && trials.rows.empty()) return {};
  std::string html = scored_notes(run) + html_of(own);
  if (trials.rows.empty()) return html;
  return html +
         note(
             "Scored with other settings than the run's. They are not scores of this run, and no "
             "comparison reads them.") +
         html_of(trials);
}

std::string samples(const RunRecord& run) {
  constexpr std::size_t shown = 8;
  std::string html;
  const std::size_t first = run.samples.size() - std::min(shown, run.samples.size());
  if (first > 0)
    html += note(fmt::format("The last {} of {} that samples.jsonl holds.", shown, run.samples.size()));
  for (std::size_t i = run.samples.size(); i-- > first;) {
    const TextSample& sample = run.samples[i];
    html += fmt::format("<blockquote><b>{}</b>{}</blockquote>\n", escape(sample.prompt), escape(sample.text));
    html += note(fmt::format("{} tokens by {}, temperature {:g}, seed {}", sample.tokens, sample.weights,
                             sample.temperature, sample.seed));
  }
  return html;
}

std::string artifact(const RunRecord& run) {
  const ResultValue& quantize = run.quantize;
  if (!quantize) return {};
  const double limit = quantize.number("limit_bytes", 0), bytes = quantize.required("artifact_bytes");
  BarChart chart{"artifact-bar", "Bytes",
                 limit > 0 ? fmt::format("The line is the limit, {} bytes.", count_text(limit))
                           : "No limit is set (ledger.artifact_bytes)."};
  const auto bar = [&](const char* what, std::optional<double> code) {
    if (!code) return;
    chart.bars.push_back(
        {what, bytes + *code, count_text(bytes + *code), limit > 0 ? std::optional(limit) : std::nullopt});
  };
  bar("artifact", 0);
  bar("artifact + code of an evaluation", quantize.number("evaluation_source_bytes"));
  bar("artifact + all source", quantize.number("source_bytes"));
  bar("artifact + binary", quantize.number("binary_bytes"));
  Table table{{"tensor", "shape", "format", "bytes", "bits/element"}, {}};
  for (const ResultValue& tensor : quantize.list("tensors")) {
    std::vector<std::string> shape;
    for (const ResultValue& size : tensor.list("shape"))
      shape.push_back(fmt::format("{:.0f}", size.number().value_or(NAN)));
    table.rows.push_back({{tensor.text("name")},
                          {fmt::format("[{}]", fmt::join(shape, ", "))},
                          {tensor.text("format")},
                          count_cell(tensor.number("bytes", NAN)),
                          {fixed(tensor.number("bits_per_element", NAN), 2), true}});
  }
  return charts(draw(chart)) + details("Every tensor", html_of(table));
}

std::string ttt_notes(const ResultValue& ttt) {
  const bool bits = scores_bits(ttt);
  const char *key = bits ? "val_bpb" : "val_loss_nats", *unit = score_unit(ttt);
  const auto with = ttt_score(ttt), without = ttt["without_ttt"].number(key),
             evaluation = ttt["evaluation"].number(key),
             compared = ttt["compared/with"].number(bits ? "bpb" : "loss_nats");
  std::string html;
  if (with && compared && without && evaluation) {
    html += fmt::format(
        "<p>{} {} with test-time training. The same windows without adaptation: {}, a gain of {}. The evaluation: "
        "{}.</p>\n",
        bpb_text(*with), unit, bpb_text(*without), bpb_text(*without - *compared), bpb_text(*evaluation));
  }
  if (const std::string weights = ttt.text("weights"); !weights.empty()) html += note("Scored: " + weights);
  if (const std::string made = made_text(ttt); !made.empty())
    html += note("Made on the device before scoring + meanwhile + after it, all ranks: " + made);
  if (const ResultValue transform = ttt["transform"]) {
    const auto plain = transform["without"].number(bits ? "bpb" : "loss_nats");
    html += fmt::format(
        "<p>Scored through the transform {}, which learns in {} order{}.</p>\n",
        escape(transform.text("plugin")), escape(transform.text("text_order")),
        plain ? fmt::format("; without it the same model scores {} {}", bpb_text(*plain), unit) : "");
    if (transform.flag("contested")) {
      html += warning(
          "Contested: the transform knew documents that were scored later, as in the published record.");
    }
  }
  if (const auto batch = ttt.number("collapsed_at_batch")) {
    html += warning(fmt::format("After batch {} the score was worse than without test-time training{}.",
                                *batch + 1,
                                ttt.flag("fell_back") ? "; the rest was scored without adapters" : ""));
  }
  return html;
}

std::string ttt_section(const RunRecord& run) {
  if (!run.ttt_void.empty()) return note(run.ttt_void);
  if (!run.ttt) return {};
  const ResultValue& ttt = run.ttt;
  const char* sum = scores_bits(ttt) ? "bpb" : "loss_nats";
  std::string figures;
  if (!ttt.list("batches").empty()) {
    figures += draw(ttt_score_chart(ttt));
    if (const LineChart drift = ttt_drift_chart(ttt); !drift.curves.empty()) figures += draw(drift);
  }
  BarChart gains{"ttt-gain-bar", "Gain by document length",
                 fmt::format("In {}; right is better with test-time training.", score_unit(ttt))};
  for (const ResultValue& bin : ttt.list("length_bins")) {
    const double gain = bin["compared/without"].number(sum, NAN) - bin["compared/with"].number(sum, NAN);
    if (!std::isfinite(gain)) continue;  // not scored without it
    gains.bars.push_back(
        {fmt::format("{} to {} tokens ({})", count_text(bin.number("shortest_tokens", NAN)),
                     count_text(bin.number("longest_tokens", NAN)), count_text(bin.number("documents", NAN))),
         gain, bpb_text(gain)});
  }
  if (!gains.bars.empty()) figures += draw(gains);
  for (const ResultValue& phase : ttt.list("phases")) {
    const double number = phase.number("phase", NAN);
    LineChart chart{
        fmt::format("ttt-phase-{:.0f}-curve", number), fmt::format("Base model, phase {:.0f}", number),
        fmt::format("Trained on {} scored documents ({} tokens), {}.",
                    count_text(phase.number("documents", 0)), count_text(phase.number("tokens", 0)),
                    seconds_text(phase.number("seconds", 0))),
        "step", "nats per token"};
    Curve curve{"loss before the update", {}};
    for (const ResultValue& step : phase.list("steps"))
      curve.points.push_back({static_cast<double>(curve.points.size() + 1), step.number("loss_nats", NAN)});
    chart.curves.push_back(std::move(curve));
    figures += draw(chart);
  }
  return ttt_notes(ttt) + charts(figures);
}

// On the diagonal confidence equals accuracy; below it the model is too sure.
LineChart reliability_chart(const ResultValue& set, std::size_t number) {
  LineChart chart{
      fmt::format("calibration-{}-curve", number), "Reliability, " + set.text("name"),
      "How often answers of each bin of confidence were right. Below the diagonal the model is too sure.",
      "confidence", "share right"};
  Curve measured{"measured", {}, 0, Stroke::dots};
  for (const ResultValue& bin : set.list("bins")) {
    if (bin.required("count") > 0)
      measured.points.push_back({bin.required("confidence"), bin.required("accuracy")});
  }
  chart.curves = {{"confidence equals accuracy", {{0, 0}, {1, 1}}, 6, Stroke::dashed}, std::move(measured)};
  return chart;
}

std::string calibration(const RunRecord& run) {
  if (!run.calibration) return {};
  Table table{{"set", "items", "accuracy", "confidence", "ECE", "adaptive ECE", "MCE", "Brier", "nats",
               "swagger", "gap"},
              {}};
  const auto add = [&](const std::string& name, const ResultValue& figures) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {{name}, count_cell(figures.required("items"))};
    for (const char* key : {"accuracy", "confidence", "ece", "adaptive_ece", "mce", "brier", "loss_nats",
                            "swagger", "swagger_gap"}) {
      row.push_back(number_cell(figures.number(key), 4));
    }
  };
  std::string figures;
  for (const ResultValue& set : run.calibration.list("sets")) {
    add(set.text("name"), set);
    for (const ResultValue& subject : set.list("subjects"))
      add(set.text("name") + ": " + subject.text("name"), subject);
    figures += draw(reliability_chart(set, table.rows.size()));
  }
  return note("Answered by: " + run.calibration.text("weights")) + html_of(table) + charts(figures);
}

std::string ensemble(const RunRecord& run) {
  const ResultValue& all = run.ensemble;
  if (!all) return {};
  Table table{{"", "nats", "bits per byte", "accuracy", "ECE", "stored"}, {}};
  const auto add = [&](const char* name, std::optional<double> nats, std::optional<double> bpb,
                       std::optional<double> accuracy, std::optional<double> ece, double bytes) {
    table.rows.push_back({{name},
                          number_cell(nats, 5),
                          number_cell(bpb, 5),
                          number_cell(accuracy, 4),
                          number_cell(ece, 4),
                          {bytes > 0 ? bytes_text(bytes) : "-", true}});
  };
  const auto add_model = [&](const char* name, const ResultValue& figures, double bytes) {
    add(name, figures.required("loss_nats"), figures.number("bpb"), figures.required("accuracy"),
        figures.number("ece"), bytes);
  };
  const double one = all.required("kept_bytes") + all.required("member_bytes");
  const double mean = all.required("member_mean_loss_nats");
  const auto bpb = all.number("model/bpb");
  double accuracy = 0;
  const std::vector<ResultValue> accuracies = all.list("member_accuracy"),
                                 losses = all.list("member_loss_nats");
  for (const ResultValue& share : accuracies)
    accuracy += share.number().value_or(NAN) / static_cast<double>(accuracies.size());
  add_model("the model", all["model"], 0);
  add_model("reference", all["reference"], one);
  add("a member, mean", mean, bpb ? std::optional(mean * *bpb / all.required("model/loss_nats")) : bpb,
      accuracy, {}, one);
  add_model("ensemble", all["ensemble"], all.required("all_bytes"));
  BarChart bars{"ensemble-bars", "Losses of the members", "Nats per token."};
  const auto bar = [&](const std::string& name, double loss) {
    bars.bars.push_back({name, loss, bpb_text(loss) + " nats"});
  };
  bar("the model", all.required("model/loss_nats"));
  bar("reference", all.required("reference/loss_nats"));
  constexpr std::size_t shown = 20;
  for (std::size_t k = 0; k < std::min(shown, losses.size()); ++k)
    bar(fmt::format("member {}", k), losses[k].number().value_or(NAN));
  bar("ensemble", all.required("ensemble/loss_nats"));
  return note(fmt::format(
             "{} members of {} by {} ({}), seed {}, over {} tokens. The score is that of several "
             "models, so it is not a val_bpb of this run.",
             count_text(all.required("members")), all.text("weights"), all.text("plugin"),
             all.text("settings"), count_text(all.required("seed")), count_text(all.required("tokens")))) +
         html_of(table) +
         note(fmt::format("ambiguity {} nats, disagreement {} % of predicted tokens",
                          fixed(all.required("ambiguity_nats"), 6),
                          fixed(100 * all.required("disagreement"), 2))) +
         charts(draw(bars));
}

std::string time_section(const RunRecord& run) {
  std::vector<std::pair<std::string, ResultValue>> phases;
  if (!run.ledger) phases = run.result.items("seconds");
  for (const ResultValue& stage : run.ledger.list("stages"))
    std::ranges::move(stage.items("seconds"), std::back_inserter(phases));
  if (phases.empty()) return {};
  BarChart seconds{"time-bar", "Seconds by phase", ""};
  BarChart budgets{"budget-bar", "Budgets", "The share that was used; the line is the whole budget."};
  const auto budget = [&](const std::string& label, double used, double limit, std::string (*text)(double)) {
    budgets.bars.push_back({label, used / limit, text(used) + " of " + text(limit), 1.0});
  };
  for (const auto& [phase, value] : phases) {
    const double spent = value.number().value_or(NAN), limit = run.number("train.budget_seconds");
    seconds.bars.push_back({phase, spent, seconds_text(spent)});
    if (phase == "train" && limit > 0) budget("train.budget_seconds", spent, limit, seconds_text);
  }
  for (const ResultValue& b : run.ledger.list("budgets")) {
    const std::string key = b.text("key");
    budget(fmt::format("{} ({})", key, b.text("what")), b.number("used", NAN), b.number("limit", NAN),
           key.find("bytes") != std::string::npos ? bytes_text : seconds_text);
  }
  return charts(draw(seconds) + (budgets.bars.empty() ? "" : draw(budgets)));
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
  std::string html = charts(draw(whole) + draw(programs));
  if (const auto peak = run.result.number("peak_memory_bytes")) {
    html += note(fmt::format("The whole process held {} at its peak, host memory and libraries included.",
                             bytes_text(*peak)));
  }
  return html;
}

std::string configuration(const RunRecord& run) {
  if (run.settings.empty()) return {};
  Table all{{"key", "value", "origin"}, {}}, chosen = all;
  for (const ResolvedSetting& setting : run.settings) {
    all.rows.push_back({{setting.key}, {setting.value}, {setting.origin}});
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

std::string missing_text(const RunRecord& run) {
  if (!run.result) return {};
  const std::string place = run.files.directory.string();
  std::vector<std::string> ways;
  if (!run.quantize && !run.setting("quantize.plugin").empty())
    ways.push_back(fmt::format("There is no artifact yet: mulligan quantize {}.", place));
  if (!run.ttt && run.ttt_void.empty() && !run.setting("ttt.adapters.plugin").empty())
    ways.push_back(
        fmt::format("No score with test-time training yet: mulligan ttt {0} --output {0}.", place));
  if (run.samples.empty())
    ways.push_back(fmt::format("No sample of text yet: mulligan generate {} --keep.", place));
  return fmt::format("{}", fmt::join(ways, " "));
}

}  // namespace mulligan::report
