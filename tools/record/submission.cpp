#include "tools/record/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/json_file.h"
#include "framework/core/parse_number.h"

namespace mulligan::record {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::initializer_list<const char*>;

constexpr const char* format_name = "mulligan record 3";

// Each field once, for the writer and the reader: io(value, names). The first name is written. The others occur in published
// submissions; one that ends in "_ms", unless it is the first, states milliseconds of a figure in seconds.
template <typename Result>
void each_figure(Result& r, auto&& io) {
  io(r.val_loss, {"val_loss"});
  io(r.val_bpb, {"val_bpb", "bpb", "post_ttt_bpb", "post_ttt_val_bpb", "quantized_ttt_val_bpb"});
  io(r.step_avg_ms, {"step_avg_ms"});
  io(r.train_seconds,
     {"train_time_s", "train_seconds", "train_time_seconds", "wallclock_seconds", "train_time_ms"});
  io(r.eval_seconds, {"eval_time_s", "eval_seconds", "eval_time_seconds", "eval_time_ms"});
  io(r.val_bpb_before, {"val_bpb_before_quantisation"});
  io(r.val_bpb_quantised, {"val_bpb_quantised"});
  io(r.artifact_bytes, {"artifact_bytes", "bytes_total", "submission_bytes", "artifact_size_bytes"});
  io(r.model_bytes, {"model_bytes", "bytes_model_int8_zlib"});
  io(r.code_bytes, {"code_bytes", "bytes_code"});
  io(r.steps, {"steps", "step_stop"});
  io(r.tokens, {"val_tokens"});
  io(r.bytes, {"val_bytes"});
  io(r.byte_rule, {"byte_rule"});
  io(r.log, {"log"});
  io(r.digests, {"sha256"});
}

template <typename S>
void each_field(S& s, auto&& io) {
  io(s.author, {"author"});
  io(s.github_id, {"github_id"});
  io(s.name, {"name"});
  io(s.track, {"track"});
  io(s.val_loss, {"val_loss"});
  io(s.val_bpb, {"val_bpb", "val_bpb_mean", "mean_val_bpb"});
  io(s.val_loss_std, {"val_loss_std"});
  io(s.val_bpb_std, {"val_bpb_std"});
  io(s.bytes_total, {"bytes_total", "artifact_bytes_max"});
  io(s.bytes_code, {"bytes_code"});
}

// What only this program writes.
template <typename S>
void each_own_field(S& s, auto&& io) {
  io(s.blurb, {"blurb"});
  io(s.date, {"date"});
  io(s.overlap, {"overlap"});
  io(s.hardware, {"hardware"});
  io(s.environment, {"environment"});
  io(s.software, {"software"});
  io(s.command, {"command"});
  io(s.files, {"files"});
}

struct Writer {
  Json& json;
  template <typename T>
  void operator()(const std::optional<T>& value, Names names) const {
    if (value) json[*names.begin()] = *value;
  }
  template <typename T>
  void operator()(const T& value, Names names) const {
    if (!value.empty()) json[*names.begin()] = value;
  }
};

// Reads fields of an object: of several names the first that has a value. A field of another type is an oddity; a number that
// is written as text is taken.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::vector<std::string>& oddities)
      : json_(json), where_(std::move(where)), oddities_(oddities) {
    if (!json.is_object()) oddities_.push_back(where_ + " is not an object");
  }
  // null: it is not there.
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  void odd(const char* key, const char* what) const {
    oddities_.push_back(fmt::format("{}{} is not {}", where_, key, what));
  }
  void operator()(std::string& value, Names names) const {
    const Json* json = find(*names.begin());
    if (json == nullptr) return;
    json->is_string() ? json->get_to(value), void() : odd(*names.begin(), "text");
  }
  void operator()(Digests& value, Names names) const {
    const Json* sums = find(*names.begin());
    if (sums == nullptr || !sums->is_object()) return;
    for (const auto& [what, sum] : sums->items())
      if (sum.is_string()) value[what] = sum.get<std::string>();
  }
  void operator()(std::optional<double>& value, Names names) const {
    for (const char* name : names) {
      if (value || find(name) == nullptr || find(name)->is_object()) continue;
      value = number(name);
      if (value && name != *names.begin() && std::string_view(name).ends_with("_ms")) *value /= 1000;
    }
  }
  void operator()(std::optional<std::uint64_t>& value, Names names) const {
    for (const char* name : names) {
      std::optional<double> found;
      if (!value) (*this)(found, {name});
      if (found && *found >= 0 && *found <= 1e15 && *found == std::floor(*found))
        value = static_cast<std::uint64_t>(*found);
      else if (found)
        odd(name, "a count");
    }
  }

 private:
  std::optional<double> number(const char* key) const {
    const Json& value = *find(key);
    std::optional<double> number;
    if (value.is_number()) number = value.get<double>();
    if (!number || !std::isfinite(*number)) odd(key, "a finite number");
    if (value.is_string()) number = parse_number<double>(value.get<std::string>());
    return number && std::isfinite(*number) ? number : std::nullopt;
  }
  const Json& json_;
  std::string where_;
  std::vector<std::string>& oddities_;
};

// "42", "seed_42" and the like.
std::optional<std::int64_t> seed_number(const std::string& text, std::vector<std::string>& oddities) {
  const auto number = parse_number<std::int64_t>(text), seed = number ? number : seed_of_name(text);
  if (!seed) oddities.push_back(fmt::format("seed_results has a seed '{}'", text));
  return seed;
}

// Where the results by seed stand; null: nowhere.
const Json* listed_results(const Fields& top) {
  if (const Json* listed = top.find("seed_results")) return listed;
  for (const char* key : {"per_seed", "seeds", "results"}) {
    const Json* listed = top.find(key);
    if (listed == nullptr || listed->empty()) continue;
    const auto has_seed = [](const Json& one) { return one.is_object() && one.contains("seed"); };
    if (listed->is_object() && key != std::string_view("results")) return listed;
    if (listed->is_array() && std::all_of(listed->begin(), listed->end(), has_seed)) return listed;
  }
  return nullptr;
}

void read_results(const Json& json, const Fields& top, Submission& submission) {
  std::vector<std::string>& oddities = submission.oddities;
  const auto add = [&](const Json& one, std::optional<std::int64_t> seed) {
    SeedResult& result = submission.results.emplace_back();
    result.seed = seed;
    if (one.is_number()) {
      result.val_bpb = one.get<double>();
    } else {
      each_figure(result,
                  Fields(one, seed ? fmt::format("seed_results.{}.", *seed) : std::string(), oddities));
    }
  };
  const Json* listed = listed_results(top);
  if (listed == nullptr) return add(json, {});
  if (!listed->is_structured())
    return oddities.emplace_back("seed_results is neither an object nor a list"), void();
  for (const auto& [name, result] : listed->items()) {
    std::optional<std::uint64_t> seed;
    if (listed->is_object()) {
      if (const auto number = seed_number(name, oddities)) add(result, number);
    } else if (Fields(result, "a result of seed_results ", oddities)(seed, {"seed"}); seed) {
      add(result, static_cast<std::int64_t>(*seed));
    } else {
      oddities.emplace_back("a result of seed_results has no seed");
    }
  }
}

// The listed seeds; a single result that states no seed has the only one.
void read_seeds(const Json& listed, Submission& submission) {
  for (const Json& seed : listed) {
    auto number = parse_number<std::int64_t>(seed.dump());
    if (!number) submission.oddities.emplace_back("seeds has something other than whole numbers");
    if (seed.is_string()) number = seed_number(seed.get<std::string>(), submission.oddities);
    if (number) submission.seeds.push_back(*number);
  }
  if (submission.seeds.size() == 1 && submission.results.size() == 1 && !submission.results[0].seed)
    submission.results[0].seed = submission.seeds[0];
}

Submission submission_of(const Json& json) {
  Submission s;
  const Fields top(json, "", s.oddities);
  const Json* format = top.find("format");
  s.own = format != nullptr && *format == format_name;
  each_field(s, top);
  read_results(json, top, s);
  if (const Json* seeds = top.find("seeds"); seeds != nullptr && !seeds->is_object())
    seeds->is_array() ? read_seeds(*seeds, s) : top.odd("seeds", "a list");
  if (!s.own) {
    s.non_record = speaks_of_no_record(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return s;
  }
  each_own_field(s, top);
  if (const Json* budgets = top.find("budgets"))
    s.budgets = {budgets->at("train_seconds"), budgets->at("eval_seconds"), budgets->at("artifact_bytes")};
  return s;
}

}  // namespace

bool speaks_of_no_record(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(std::initializer_list<const char*>{"non-record", "non_record", "nonrecord"},
                             [&](const char* word) { return text.find(word) != std::string::npos; });
}

std::optional<std::int64_t> seed_of_name(const std::string& name) {
  const std::size_t word = std::min(name.find("seed"), name.find("Seed"));
  if (word == std::string::npos) return {};
  const std::size_t at = std::min(name.find_first_not_of("_-", word + 4), name.size());
  std::int64_t seed = 0;
  const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), seed);
  return error == std::errc() ? std::optional(seed) : std::nullopt;
}

std::string artifact_name(const SeedResult& result) {
  return fmt::format("artifact_seed{}.mulligan", result.seed.value_or(0));
}

Json submission_json(const Submission& s) {
  Json json = {{"format", format_name}}, results = Json::object();
  each_field(s, Writer{json});
  for (const SeedResult& result : s.results)
    each_figure(result, Writer{results[std::to_string(result.seed.value_or(0))]});
  json["seeds"] = s.seeds;
  json["seed_results"] = results;
  if (s.budgets) {
    json["budgets"] = {{"train_seconds", s.budgets->train_seconds},
                       {"eval_seconds", s.budgets->eval_seconds},
                       {"artifact_bytes", s.budgets->artifact_bytes}};
  }
  if (s.comparison) {
    const Comparison& c = *s.comparison;
    json["comparison"] = {{"name", c.name},
                          {"reference_bpb", c.reference_bpb},
                          {"margin_nats", c.rule.margin_nats},
                          {"alpha", c.rule.alpha},
                          {"paired", c.rule.paired},
                          {"p", c.result.test.greater},
                          {"accepted", c.result.accepted},
                          {"decision", c.result.decision},
                          {"notes", c.result.notes}};
  }
  each_own_field(s, Writer{json});
  return json;
}

Submission read_submission(const std::filesystem::path& path) {
  return read_json_object<Json>(path, submission_of, "get the folder anew");
}

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
    text += fmt::format("- Against {}: {}\n", s.comparison->name, s.comparison->result.decision);
    for (const std::string& note : s.comparison->result.notes) text += fmt::format("  Note: {}.\n", note);
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
