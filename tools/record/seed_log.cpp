#include "tools/record/seed_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

namespace mulligan::record {
namespace {

// Of scores in the logs of others: how the names of those that count begin, and what those on the way have.
constexpr std::string_view names_of_quantised[] = {"quantized", "final_", "legal_ttt"},
                           words_on_the_way[] = {"diagnostic", "pre-quant", "pre_quant", "prequant",
                                                 "step:",      "step ",     "ema",       "swa"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// The finite number after `label` in `line`, blanks before it left out.
template <typename T>
std::optional<T> number_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return {};
  const std::string_view text = trimmed(line.substr(at + label.size()));
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::isfinite(static_cast<double>(value)) ? std::optional(value)
                                                                           : std::nullopt;
}

template <typename T>
void take(std::optional<T>& value, const std::optional<T>& found) {
  if (found) value = found;
}

bool begins_word(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  return at == 0 || (at != std::string_view::npos && line[at - 1] == ' ');
}

// "LABEL KIND: 15949160 bytes".
struct Size {
  std::string_view kind;
  std::optional<std::uint64_t> bytes;
};
Size size_of(std::string_view line, std::string_view label) {
  if (!begins_word(line, label)) return {};
  line.remove_prefix(line.find(label) + label.size());
  return {trimmed(line.substr(0, line.find(':'))), number_after<std::uint64_t>(line, ":")};
}

void read_sizes(std::string_view line, LogClaims& claims) {
  // Without a kind it is the model before quantisation.
  const Size model = size_of(line, "Serialized model"), total = size_of(line, "Total submission size"),
             code = size_of(line, "Code size");
  if (!model.kind.empty()) take(claims.model_bytes, model.bytes);
  if (!total.kind.empty()) take(claims.total_bytes, total.bytes);
  if (!code.bytes) return;
  const bool compressed = code.kind.starts_with("(compressed)");
  if (!compressed) claims.code_uncompressed_bytes = code.bytes;
  if (claims.code_compressed && !compressed) return;
  claims.code_bytes = code.bytes;
  claims.code_compressed = compressed;
}

// What stands before the figures of a line, in small letters.
std::string head_of(std::string_view line) {
  const std::size_t figures = std::min(line.find("val_loss"), line.find("val_bpb"));
  std::string head(trimmed(line.substr(0, std::min(figures, line.find_first_of(":=", line.find("bpb"))))));
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  return head;
}

// Whether a score is of a model on the way: "step:1000/20000", "1000/20000", "diagnostic", "pre-quantization".
bool is_on_the_way(std::string_view head) {
  const bool progress = head.find('/') != head.npos && head.find_first_not_of("0123456789/ ") == head.npos;
  return head.empty() || progress || std::ranges::any_of(words_on_the_way, [&](std::string_view word) {
           return head.find(word) != std::string_view::npos;
         });
}

// NAME val_loss:2.76 val_bpb:1.069 eval_time:478452ms, also with '=' and without the loss. A score of the
// quantised model by its name, else another.
void read_score(std::string_view line, LogClaims& claims) {
  const auto figure = [&](const std::string& key) {
    const auto found = number_after<double>(line, key + ":");
    return found ? found : number_after<double>(line, key + "=");
  };
  const auto bpb = figure("bpb");
  if (!bpb) return;
  const std::string head = head_of(line);
  LogScore score{head, *bpb, figure("val_loss"), {}};
  // A script that prints 0 has not measured it.
  if (const auto milliseconds = number_after<double>(line, "eval_time:"); milliseconds && *milliseconds > 0)
    score.eval_seconds = *milliseconds / 1000;
  const bool quantised =
      std::ranges::any_of(names_of_quantised, [&](std::string_view name) { return begins_word(head, name); });
  if (quantised && score.val_loss && head.find("diagnostic") == std::string::npos)
    claims.scores.push_back(std::move(score));
  else if (!is_on_the_way(head))
    claims.other_scores.push_back(std::move(score));
}

// "record_sha256 artifact:SUM config:SUM ...", which this program writes.
void read_digests(std::string_view line, LogClaims& claims) {
  if (!line.starts_with("record_sha256 ")) return;
  std::istringstream words{std::string(line)};
  for (std::string word; words >> word;) {
    if (const std::size_t colon = word.find(':'); colon != std::string::npos)
      claims.digests[word.substr(0, colon)] = word.substr(colon + 1);
  }
}

void read_line(std::string_view line, LogClaims& claims) {
  // Only the line that a training stops with has both; those on the way count in minutes.
  const auto milliseconds = number_after<double>(line, "train_time:");
  const bool in_minutes =
      line.find("train_time: ") != std::string_view::npos && line.find("ms") == std::string_view::npos;
  if (milliseconds && !in_minutes) {
    claims.train_seconds = *milliseconds / 1000;
    take(claims.steps, number_after<std::uint64_t>(line, "step:"));
  }
  read_sizes(line, claims);
  take(claims.total_eval_seconds, number_after<double>(line, "total_eval_time:"));
  read_score(line, claims);
  read_digests(line, claims);
}

}  // namespace

std::vector<LogClaims> read_seed_log(std::string_view text, bool by_seed) {
  std::vector<LogClaims> runs(1);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view whole = text.substr(begin, text.find('\n', begin) - begin), line = trimmed(whole);
    begin += whole.size() + 1;
    if (line.starts_with("seed:")) {
      const auto seed = number_after<std::int64_t>(line, ":");
      if (by_seed && seed && runs.back().seed && seed != runs.back().seed) runs.emplace_back();
      take(runs.back().seed, seed);
    }
    read_line(line, runs.back());
  }
  return runs;
}

std::string summary_lines(const SeedResult& r) {
  std::string digests;
  for (const auto& [what, sum] : r.digests) digests += fmt::format(" {}:{}", what, sum);
  return fmt::format(
      "record_sha256{}\n"
      "seed:{}\n"
      "stopping train_time:{}ms step:{}\n"
      "Serialized model quantized: {} bytes\n"
      "Code size (compressed): {} bytes\n"
      "Total submission size quantized: {} bytes\n"
      "quantized_ttt_exact val_loss:{} val_bpb:{} eval_time:{}ms\n",
      digests, r.seed.value(), 1000 * r.train_seconds.value(), r.steps.value(), r.model_bytes.value(),
      r.code_bytes.value(), r.artifact_bytes.value(), r.val_loss.value(), r.val_bpb.value(),
      1000 * r.eval_seconds.value());
}

}  // namespace mulligan::record
