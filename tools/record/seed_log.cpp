#include "tools/record/seed_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace mulligan::record {
namespace {

constexpr std::string_view score_of_summary = "quantized_ttt_exact";
// Of scores in the logs of others: how the names of those that count begin, and what those on the way have.
constexpr std::string_view names_of_quantised[] = {"quantized", "final_", "legal_ttt"},
                           words_on_the_way[] = {"diagnostic", "pre-quant", "pre_quant", "prequant",
                                                 "step:",      "step ",     "ema",       "swa"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// The number at the front of `text`, blanks before it left out.
template <typename T>
std::optional<T> number_at(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return {};
  }
  return value;
}

// The number after `label` in `line`.
template <typename T>
std::optional<T> number_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return {};
  return number_at<T>(line.substr(at + label.size()));
}

template <typename T>
void take(std::optional<T>& value, const std::optional<T>& found) {
  if (found) value = found;
}

// The line from `label` on, where it begins a word there; empty: it has none.
std::string_view from(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  return at == std::string_view::npos || (at > 0 && line[at - 1] != ' ') ? std::string_view()
                                                                         : line.substr(at);
}

// "Serialized model quantized+brotli: 15949160 bytes": bytes of a line `label` KIND, where KIND is not empty:
// without one it is the model before quantisation.
std::optional<std::uint64_t> bytes_of(std::string_view line, std::string_view label) {
  line = from(line, label);
  const std::size_t colon = line.find(':', std::min(label.size(), line.size()));
  if (colon == std::string_view::npos || trimmed(line.substr(label.size(), colon - label.size())).empty())
    return {};
  return number_at<std::uint64_t>(line.substr(colon + 1));
}

void read_code_line(std::string_view line, LogClaims& claims) {
  line = from(line, "Code size");
  const bool compressed = line.starts_with("Code size (compressed)");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const auto bytes = number_at<std::uint64_t>(line.substr(colon + 1));
  if (!bytes) return;
  if (!compressed) claims.code_uncompressed_bytes = bytes;
  if (claims.code_compressed && !compressed) return;
  claims.code_bytes = bytes;
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
  const std::size_t slash = head.find('/');
  const bool progress =
      slash != std::string_view::npos && head.find_first_not_of("0123456789/ ") == head.npos;
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
  const bool quantised = std::ranges::any_of(
      names_of_quantised, [&](std::string_view name) { return !from(head, name).empty(); });
  if (quantised && score.val_loss && head.find("diagnostic") == std::string::npos)
    claims.scores.push_back(std::move(score));
  else if (!is_on_the_way(head))
    claims.other_scores.push_back(std::move(score));
}

// "record_sha256 artifact:SUM config:SUM ...", which this program writes.
void read_digests(std::string_view line, LogClaims& claims) {
  constexpr std::string_view label = "record_sha256 ";
  if (!line.starts_with(label)) return;
  for (line.remove_prefix(label.size()); !line.empty();) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos)
      claims.digests[std::string(word.substr(0, colon))] = word.substr(colon + 1);
  }
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::optional<std::int64_t> seed_said(std::string_view line) {
  return line.starts_with("seed:") ? number_at<std::int64_t>(line.substr(5)) : std::nullopt;
}

void read_line(std::string_view line, LogClaims& claims) {
  take(claims.seed, seed_said(line));
  // Only the line that a training stops with has both; those on the way count in minutes.
  const auto milliseconds = number_after<double>(line, "train_time:");
  const bool in_minutes =
      line.find("train_time: ") != std::string_view::npos && line.find("ms") == std::string_view::npos;
  if (milliseconds && !in_minutes) {
    claims.train_seconds = *milliseconds / 1000;
    take(claims.steps, number_after<std::uint64_t>(line, "step:"));
  }
  take(claims.model_bytes, bytes_of(line, "Serialized model"));
  take(claims.total_bytes, bytes_of(line, "Total submission size"));
  read_code_line(line, claims);
  take(claims.total_eval_seconds, number_after<double>(line, "total_eval_time:"));
  read_score(line, claims);
  read_digests(line, claims);
}

}  // namespace

LogClaims read_seed_log(std::string_view text) {
  LogClaims claims;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = line_at(text, begin);
    begin += line.size() + 1;
    read_line(trimmed(line), claims);
  }
  return claims;
}

std::vector<std::string> runs_of_log(std::string_view text) {
  std::vector<std::string> runs(1);
  std::optional<std::int64_t> seed;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = line_at(text, begin);
    begin += line.size() + 1;
    const auto said = seed_said(trimmed(line));
    if (said && seed && *said != *seed) runs.emplace_back();
    take(seed, said);
    runs.back().append(line).append("\n");
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
      "{} val_loss:{} val_bpb:{} eval_time:{}ms\n",
      digests, r.seed.value(), 1000 * r.train_seconds.value(), r.steps.value(), r.model_bytes.value(),
      r.code_bytes.value(), r.artifact_bytes.value(), score_of_summary, r.val_loss.value(), r.val_bpb.value(),
      1000 * r.eval_seconds.value());
}

}  // namespace mulligan::record
