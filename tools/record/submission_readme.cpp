#include "tools/record/submission_readme.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/record/hidden_text.h"

namespace mulligan::record {
namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string seed_rows(const Submission& s) {
  std::string rows =
      "| seed | val_bpb | val_loss (nats) | before quantisation | quantised | steps | ms "
      "per step | training s | evaluation s | model bytes | code bytes | total bytes |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const SeedResult& r : s.results) {
    rows += fmt::format("| {} | **{}** | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        r.seed.value_or(0), number(r.val_bpb, 8), number(r.val_loss, 8),
                        number(r.val_bpb_before, 5), number(r.val_bpb_quantised, 5), r.steps.value_or(0),
                        number(r.step_avg_ms, 1), number(r.train_seconds, 2), number(r.eval_seconds, 2),
                        r.model_bytes.value_or(0), r.code_bytes.value_or(0), r.artifact_bytes.value_or(0));
  }
  rows += fmt::format("\nMean {} bits per byte", number(s.val_bpb, 8));
  if (s.val_bpb_std) rows += fmt::format(", standard deviation of the sample {}", number(s.val_bpb_std, 8));
  rows += fmt::format("; mean {} nats per token.\n", number(s.val_loss, 8));
  return rows;
}

std::string rules_text(const Submission& s) {
  std::string text;
  if (s.budgets) {
    text += fmt::format(
        "- Budgets kept by every seed: training and calibration within {:g} s, test-time training "
        "from the loaded weights to the score within {:g} s, model and packed source within {} bytes.\n",
        s.budgets->train_seconds, s.budgets->eval_seconds, s.budgets->artifact_bytes);
  }
  text += fmt::format("- The code counts with {} bytes: those of `{}` in this folder.\n",
                      s.bytes_code.value_or(0), source_file);
  if (s.overlap) {
    text += fmt::format(
        "- {:.4g} % of the validation text stands in the training data with changes, "
        "{:.4g} % as it is, and {:.4g} % of the training data is like validation "
        "text; {} tokens of validation and {} of training data were compared.\n",
        100 * s.overlap->similar, 100 * s.overlap->copied, 100 * s.overlap->training,
        s.overlap->validation_read, s.overlap->training_read);
  }
  if (!s.data.empty()) {
    text +=
        fmt::format("- sha256 of the data: training shards `{}`, validation shards `{}`, tokenizer `{}`.\n",
                    s.data.train, s.data.validation, s.data.tokenizer);
  }
  if (s.comparison) {
    text += fmt::format("- Against {}: {}\n", s.comparison->name, s.comparison->decision);
    for (const std::string& note : s.comparison->notes) text += fmt::format("  Note: {}.\n", note);
  }
  return text;
}

}  // namespace

std::string readme_figures(const Submission& submission) {
  return fmt::format(
      "{}\n\n{}\n{}\n"
      "{}\n",
      figures_begin, seed_rows(submission), rules_text(submission), figures_end);
}

std::string figures_fault(const std::string& readme, const std::string& figures) {
  const std::size_t at = readme.find(figures);
  if (at == std::string::npos) return "is not what submission.json gives";
  if (readme.find(figures_begin) != at || readme.find(figures_begin, at + 1) != std::string::npos)
    return "stands there twice";
  if (at > 0 && readme[at - 1] != '\n') return "does not begin a line";
  if (leaves_something_open(std::string_view(readme).substr(0, at)))
    return "stands behind a comment, a block of code or an element of HTML that does not end before it, and "
           "may hide it";
  return {};
}

std::string readme_text(const Submission& s) {
  std::string text =
      fmt::format("# {}\n\n{} (@{}), {}, track {}.\n\n", s.name, s.author, s.github_id, s.date, s.track);
  if (!s.blurb.empty()) text += s.blurb + "\n\n";
  text += fmt::format("## Result\n\n{}\n", readme_figures(s));
  text += fmt::format("## How it was made\n\n```bash\n{}\n```\n\n", s.command);
  text += fmt::format("{}, on {}.\n\n", s.software, s.hardware);
  text +=
      "Each seed was trained, quantised and scored with test-time training under a strict ledger; its log "
      "holds all "
      "three stages. Test-time training is a state machine: a chunk is scored, its score is booked, only "
      "then are its "
      "tokens shown to the adapters. Every validation token is scored once, left to right, from a full "
      "softmax; that "
      "its score does not depend on later tokens is checked while scoring (the log's line "
      "\"causality\").\n\n";
  text += fmt::format(
      "## Files\n\n- `{}`: the source that an evaluation needs, which counts (`brotli -d -c {} | tar x`)\n"
      "- `{}`: the source of program, plugins and configurations, training included\n"
      "- `config.toml`: every setting of the first seed; the others differ in `run.seed` and `run.directory` "
      "alone\n",
      source_file, source_file, whole_source_file);
  for (const SeedResult& result : s.results)
    text += fmt::format("- `{}`: seed {}\n", result.log, result.seed.value_or(0));
  text += "\n`mulligan record --verify FOLDER` checks sums, sizes, claims and statistics of this folder.\n";
  return text;
}

}  // namespace mulligan::record
