// What a run was scored with and what its scores are: the sections from "Scores" to "Ensemble".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/report_page/run_sections.h"

namespace mulligan::report {

namespace {

// "-" without a value.
std::string fixed_or_dash(const std::optional<double>& value, int digits) {
  return value ? fixed(*value, digits) : "-";
}

// "" for a value that is not finite, and for bits per byte without bytes.
std::string score_text(double value, double bytes = 1) {
  return std::isfinite(value) && bytes > 0 ? bpb_text(value) : "";
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

}  // namespace

std::string scores(const RunRecord& run) {
  Table own{{"weights", "how", "val_bpb", "val_loss, nats", "tokens", "bytes"}, "llr"};
  const auto row = [&](const std::string& what, const std::string& how, double nats, double bpb,
                       double tokens, double bytes) {
    own.rows.push_back(
        {what, how, score_text(bpb, bytes), score_text(nats), count_text(tokens), count_text(bytes)});
  };
  const ResultValue& result = run.result;
  if (const auto nats = result.number("val_loss_nats")) {
    row("weights.safetensors",
        result.flag("val_masked") ? "at the end of training, masked tokens" : "at the end of training", *nats,
        result.number("val_bpb", NAN), result.number("val_tokens", 0), result.number("val_bytes", 0));
  }
  for (const EvaluationRecord& e : run.evaluations) {
    row(e.weights, e.mode, e.val_loss_nats, e.val_bpb, static_cast<double>(e.tokens),
        static_cast<double>(e.bytes));
  }
  Table trials{{"trial", "what", "other settings", "val_bpb", "val_loss, nats", "tokens"}, "lllr"};
  for (const TrialRecord& trial : run.trials) {
    std::vector<std::string> changes;
    for (const TrialRecord::Change& change : trial.changes)
      changes.push_back(fmt::format("{} = {}", change.key, change.trial.empty() ? "(none)" : change.trial));
    const EvaluationRecord& score = trial.score;
    trials.rows.push_back({trial.name, score.weights + ", " + score.mode,
                           fmt::format("{}", fmt::join(changes, ", ")),
                           score_text(score.val_bpb, static_cast<double>(score.bytes)),
                           score_text(score.val_loss_nats), count_text(static_cast<double>(score.tokens))});
  }
  if (own.rows.empty() && trials.rows.empty()) return {};
  const std::string html = scored_notes(run) + html_of(own);
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
  for (const auto& [what, code] :
       {std::pair{"artifact", std::optional(0.0)},
        {"artifact + code of an evaluation", quantize.number("evaluation_source_bytes")}}) {
    if (code)
      chart.bars.push_back(
          {what, bytes + *code, count_text(bytes + *code), limit > 0 ? std::optional(limit) : std::nullopt});
  }
  Table table{{"tensor", "shape", "format", "bytes", "bits/element"}, "lllr"};
  for (const ResultValue& tensor : quantize.list("tensors")) {
    std::vector<std::string> shape;
    for (const ResultValue& size : tensor.list("shape"))
      shape.push_back(fmt::format("{:.0f}", size.number().value_or(NAN)));
    table.rows.push_back({tensor.text("name"), fmt::format("[{}]", fmt::join(shape, ", ")),
                          tensor.text("format"), count_text(tensor.number("bytes", NAN)),
                          fixed(tensor.number("bits_per_element", NAN), 2)});
  }
  return charts(draw(chart)) + details("Every tensor", html_of(table));
}

namespace {

std::string ttt_notes(const ResultValue& ttt) {
  const bool bits = scores_bits(ttt);
  const char *key = bits ? "val_bpb" : "val_loss_nats", *sum = bits ? "bpb" : "loss_nats",
             *unit = score_unit(ttt);
  const auto with = ttt_score(ttt), without = ttt["without_ttt"].number(key),
             evaluation = ttt["evaluation"].number(key), compared = ttt["compared/with"].number(sum);
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
    const auto plain = transform["without"].number(sum);
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

}  // namespace

std::string ttt_section(const RunRecord& run) {
  if (!run.ttt_void.empty()) return note(run.ttt_void);
  if (!run.ttt) return {};
  const ResultValue& ttt = run.ttt;
  const char* sum = scores_bits(ttt) ? "bpb" : "loss_nats";
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
  std::string figures = ttt_charts(ttt) + draw(gains);
  for (const ResultValue& phase : ttt.list("phases")) {
    const double number = phase.number("phase", NAN);
    Curve curve{"loss before the update", {}};
    for (const ResultValue& step : phase.list("steps"))
      curve.points.push_back({static_cast<double>(curve.points.size() + 1), step.number("loss_nats", NAN)});
    figures += draw(
        LineChart{fmt::format("ttt-phase-{:.0f}-curve", number),
                  fmt::format("Base model, phase {:.0f}", number),
                  fmt::format("Trained on {} scored documents ({} tokens), {}.",
                              count_text(phase.number("documents", 0)), count_text(phase.number("tokens", 0)),
                              seconds_text(phase.number("seconds", 0))),
                  "step",
                  "nats per token",
                  false,
                  {curve}});
  }
  return ttt_notes(ttt) + charts(figures);
}

Table calibration_table(const ResultValue& result) {
  Table table{{"set", "items", "accuracy", "confidence", "ECE", "adaptive ECE", "MCE", "Brier", "nats",
               "swagger", "gap"},
              "lr"};
  const auto add = [&](const std::string& name, const ResultValue& figures) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {name, count_text(figures.required("items"))};
    for (const char* key : {"accuracy", "confidence", "ece", "adaptive_ece", "mce", "brier", "loss_nats",
                            "swagger", "swagger_gap"})
      row.push_back(fixed_or_dash(figures.number(key), 4));
  };
  for (const ResultValue& set : result.list("sets")) {
    add(set.text("name"), set);
    for (const ResultValue& subject : set.list("subjects"))
      add(set.text("name") + ": " + subject.text("name"), subject);
  }
  return table;
}

std::string calibration(const RunRecord& run) {
  if (!run.calibration) return {};
  std::string figures;
  for (const auto& [number, set] : run.calibration.items("sets")) {
    // On the diagonal confidence equals accuracy; below it the model is too sure.
    Curve measured{"measured", {}, 0, Stroke::dots};
    for (const ResultValue& bin : set.list("bins")) {
      if (bin.required("count") > 0)
        measured.points.push_back({bin.required("confidence"), bin.required("accuracy")});
    }
    figures += draw(LineChart{
        fmt::format("calibration-{}-curve", number),
        "Reliability, " + set.text("name"),
        "How often answers of each bin of confidence were right. Below the diagonal the model is too sure.",
        "confidence",
        "share right",
        false,
        {{"confidence equals accuracy", {{0, 0}, {1, 1}}, 6, Stroke::dashed}, measured}});
  }
  return note("Answered by: " + run.calibration.text("weights")) +
         html_of(calibration_table(run.calibration)) + charts(figures);
}

Table ensemble_table(const ResultValue& result) {
  Table table{{"", "nats", "bits per byte", "accuracy", "ECE", "stored"}, "lr"};
  const auto add = [&](const char* name, double nats, std::optional<double> bpb, double accuracy,
                       std::optional<double> ece, double bytes) {
    table.rows.push_back({name, fixed(nats, 5), fixed_or_dash(bpb, 5), fixed(accuracy, 4),
                          fixed_or_dash(ece, 4), bytes > 0 ? bytes_text(bytes) : "-"});
  };
  const auto add_model = [&](const char* name, const ResultValue& figures, double bytes) {
    add(name, figures.required("loss_nats"), figures.number("bpb"), figures.required("accuracy"),
        figures.number("ece"), bytes);
  };
  const double one = result.required("kept_bytes") + result.required("member_bytes");
  const double mean = result.required("member_mean_loss_nats");
  const auto bpb = result.number("model/bpb");
  const auto accuracies = result.list("member_accuracy");
  double accuracy = 0;
  for (const ResultValue& share : accuracies)
    accuracy += share.number().value_or(NAN) / static_cast<double>(accuracies.size());
  add_model("the model", result["model"], 0);
  add_model("reference", result["reference"], one);
  add("a member, mean", mean, bpb ? std::optional(mean * *bpb / result.required("model/loss_nats")) : bpb,
      accuracy, {}, one);
  add_model("ensemble", result["ensemble"], result.required("all_bytes"));
  return table;
}

std::string ensemble(const RunRecord& run) {
  const ResultValue& all = run.ensemble;
  if (!all) return {};
  BarChart bars{"ensemble-bars", "Losses of the members", "Nats per token."};
  const auto add_bar = [&](const std::string& name, double loss) {
    bars.bars.push_back({name, loss, bpb_text(loss) + " nats"});
  };
  add_bar("the model", all.required("model/loss_nats"));
  add_bar("reference", all.required("reference/loss_nats"));
  constexpr std::size_t shown = 20;
  const auto losses = all.list("member_loss_nats");
  for (std::size_t k = 0; k < std::min(shown, losses.size()); ++k)
    add_bar(fmt::format("member {}", k), losses[k].number().value_or(NAN));
  add_bar("ensemble", all.required("ensemble/loss_nats"));
  return note(fmt::format(
             "{} members of {} by {} ({}), seed {}, over {} tokens. The score is that of several "
             "models, so it is not a val_bpb of this run.",
             count_text(all.required("members")), all.text("weights"), all.text("plugin"),
             all.text("settings"), count_text(all.required("seed")), count_text(all.required("tokens")))) +
         html_of(ensemble_table(all)) +
         note(fmt::format("ambiguity {} nats, disagreement {} % of predicted tokens",
                          fixed(all.required("ambiguity_nats"), 6),
                          fixed(100 * all.required("disagreement"), 2))) +
         charts(draw(bars));
}

}  // namespace mulligan::report
