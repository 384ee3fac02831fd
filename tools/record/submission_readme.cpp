// README.md of a submission.
#include "tools/record/submission.h"

#include <fmt/format.h>

namespace mulligan::record {
namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string rules_text(const Submission& s) {
  std::string text;
  if (s.budgets) {
    text += fmt::format(
        "- Budgets kept by every seed: training and calibration within {:g} s, test-time training "
        "from the loaded weights to the score within {:g} s, model and packed source within {} bytes.\n",
        s.budgets->train_seconds, s.budgets->eval_seconds, s.budgets->artifact_bytes);
  }
  text += fmt::format("- The code counts with {} bytes: those of `{}` and `{}` in this folder.\n",
                      s.bytes_code.value_or(0), source_file, unpacker_file);
  if (const std::string& rule = s.results.front().byte_rule; !rule.empty()) {
    text += fmt::format("- Bits per byte are of {} (`data.byte_rule = \"{}\"`).\n",
                        rule == "original" ? "the original text" : "the text that the tokens spell", rule);
  }
  if (!s.overlap.empty()) text += fmt::format("- Overlap: {}.\n", s.overlap);
  for (const char* what : {"train", "validation", "tokenizer", "source"})
    text += fmt::format("- sha256 ({}): `{}`.\n", what, s.results.front().digest(what));
  if (s.comparison) {
    text += fmt::format("- Against {}: {}\n", s.comparison->name, s.comparison->decision);
    for (const std::string& note : s.comparison->notes) text += fmt::format("  Note: {}.\n", note);
  }
  return text;
}

}  // namespace

std::string readme_figures(const Submission& s) {
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

std::string readme_text(const Submission& s) {
  std::string text =
      fmt::format("# {}\n\n{} (@{}), {}, track {}.\n\n", s.name, s.author, s.github_id, s.date, s.track);
  if (!s.blurb.empty()) text += s.blurb + "\n\n";
  text += fmt::format("## Result\n\n{}\n{}\n", readme_figures(s), rules_text(s));
  text += fmt::format("## How it was made\n\n```bash\n{}\n```\n\n", s.command);
  text += fmt::format("{}, on {}.\n\n", s.software, s.hardware);
  text +=
      "Each seed was trained, quantised and scored with test-time training under strict rules; its log holds "
      "all three stages. A chunk is scored, its score is booked, and only then are its tokens shown to the "
      "adapters. Every validation token is scored once, left to right, from a full softmax.\n\n";
  return text +
         fmt::format(
             "## Files\n\n- `{}`, `{}`: the source that an evaluation needs, and the program that unpacks it (`zcat {} | g++ -std=c++20 -O2 -x c++ - -o unpack && ./unpack {} evaluation`); both count\n"
             "- `{}`: the source of program, plugins and configurations, training included\n"
             "- `{}`: every setting of the first seed; the others differ in `run.seed` and "
             "`run.directory` alone\n\n"
             "`mulligan record --verify FOLDER` checks that the files agree with one another; with `--rerun` "
             "it scores models of the folder again.\n",
             source_file, unpacker_file, unpacker_file, source_file, whole_source_file, config_file);
}

}  // namespace mulligan::record
