#include "tools/record/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/json_file.h"

namespace mulligan::record {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "mulligan record 2";

// A figure of a run: the name that is written, and others that published submissions use for it. A name that ends in
// "_ms", unless it is the first, states milliseconds of a figure in seconds.
template <typename T>
struct Figure {
  std::optional<T> SeedResult::*member;
  std::array<const char*, 6> names;
};

constexpr Figure<double> measured_figures[] = {
    {&SeedResult::val_loss, {"val_loss"}},
    {&SeedResult::val_bpb, {"val_bpb", "bpb", "post_ttt_bpb", "post_ttt_val_bpb", "quantized_ttt_val_bpb"}},
    {&SeedResult::step_avg_ms, {"step_avg_ms"}},
    {&SeedResult::train_seconds,
     {"train_time_s", "train_seconds", "train_time_seconds", "wallclock_seconds", "train_time_ms"}},
    {&SeedResult::eval_seconds, {"eval_time_s", "eval_seconds", "eval_time_seconds", "eval_time_ms"}},
    {&SeedResult::val_bpb_before, {"val_bpb_before_quantisation"}},
    {&SeedResult::val_bpb_quantised, {"val_bpb_quantised"}},
};
constexpr Figure<std::uint64_t> counted_figures[] = {
    {&SeedResult::artifact_bytes,
     {"artifact_bytes", "bytes_total", "submission_bytes", "artifact_size_bytes"}},
    {&SeedResult::model_bytes, {"model_bytes", "bytes_model_int8_zlib"}},
    {&SeedResult::code_bytes, {"code_bytes", "bytes_code"}},
    {&SeedResult::steps, {"steps", "step_stop"}},
    {&SeedResult::tokens, {"val_tokens"}},
    {&SeedResult::bytes, {"val_bytes"}},
};

// Sets `json[key]` where there is a value.
template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

Json seed_json(const SeedResult& result) {
  Json json = Json::object();
  for (const auto& figure : measured_figures) put(json, figure.names[0], result.*figure.member);
  for (const auto& figure : counted_figures) put(json, figure.names[0], result.*figure.member);
  put(json, "byte_rule", result.byte_rule);
  json["sha256"] = result.digests;
  put(json, "log", result.log);
  return json;
}

// The number that a text is from beginning to end.
template <typename T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Reads fields of an object. A field of another type is an oddity; a number that is written as text is taken.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::vector<std::string>& oddities)
      : json_(json), where_(std::move(where)), oddities_(oddities) {
    if (!json.is_object()) oddities_.push_back(where_ + " is not an object");
  }
  const Json* find(const char* key) const {
    if (key == nullptr || !json_.is_object() || !json_.contains(key) || json_.at(key).is_null())
      return nullptr;
    return &json_.at(key);
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return odd(key, "text"), std::string();
    return value->get<std::string>();
  }
  std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
    odd(key, "a finite number");
    const auto number =
        value->is_string() ? number_of<double>(value->get<std::string>()) : std::optional<double>();
    return number && std::isfinite(*number) ? number : std::nullopt;
  }
  std::optional<std::uint64_t> count(const char* key) const {
    const std::optional<double> value = number(key);
    if (!value) return {};
    if (*value >= 0 && *value <= 1e15 && *value == std::floor(*value))
      return static_cast<std::uint64_t>(*value);
    return odd(key, "a count"), std::optional<std::uint64_t>();
  }
  const Json* list(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr || value->is_array()) return value;
    return odd(key, "a list"), nullptr;
  }
  void read(const char* key, double& value) const { value = number(key).value_or(value); }
  void read(const char* key, std::uint64_t& value) const { value = count(key).value_or(value); }
  void read(const char* key, std::optional<double>& value) const { value = number(key); }
  void read(const char* key, std::optional<std::uint64_t>& value) const { value = count(key); }

 private:
  void odd(const char* key, const char* what) const {
    oddities_.push_back(fmt::format("{}{} is not {}", where_, key, what));
  }
  const Json& json_;
  std::string where_;
  std::vector<std::string>& oddities_;
};

template <typename T>
void read_figure(const Fields& fields, const Figure<T>& figure, const char* name, SeedResult& result) {
  std::optional<T>& value = result.*figure.member;
  fields.read(name, value);
  if constexpr (std::is_same_v<T, double>) {
    if (value && name != figure.names[0] && std::string_view(name).ends_with("_ms")) *value /= 1000;
  }
}

// Calls visit(figure) for each of both kinds.
template <typename Visit>
void each_figure(Visit&& visit) {
  for (const auto& figure : measured_figures) visit(figure);
  for (const auto& figure : counted_figures) visit(figure);
}

SeedResult read_seed(const Json& json, std::optional<std::int64_t> seed, const std::string& where,
                     std::vector<std::string>& oddities) {
  SeedResult result;
  result.seed = seed;
  if (json.is_number()) {
    result.val_bpb = json.get<double>();
    return result;
  }
  const Fields fields(json, where, oddities);
  each_figure([&](const auto& figure) {
    for (const char* name : figure.names) {
      const Json* value = fields.find(name);
      if (value == nullptr || value->is_object()) continue;
      read_figure(fields, figure, name, result);
      if (result.*figure.member) return;
    }
  });
  result.log = fields.text("log");
  result.byte_rule = fields.text("byte_rule");
  if (const Json* sums = fields.find("sha256"); sums != nullptr && sums->is_object())
    for (const auto& [what, sum] : sums->items())
      if (sum.is_string()) result.digests[what] = sum.get<std::string>();
  return result;
}

// "42", "seed_42", "seed42" and the like.
std::optional<std::int64_t> seed_number(const std::string& text, std::vector<std::string>& oddities) {
  const bool named = text.starts_with("seed") || text.starts_with("Seed");
  const std::size_t begin = named ? std::min(text.find_first_of("0123456789"), text.size()) : 0;
  const auto seed = number_of<std::int64_t>(std::string_view(text).substr(begin));
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
  const auto where = [](std::int64_t seed) { return fmt::format("seed_results.{}.", seed); };
  const Json* listed = listed_results(top);
  if (listed == nullptr) {
    submission.results.push_back(read_seed(json, {}, "", oddities));
  } else if (listed->is_object()) {
    for (const auto& [name, result] : listed->items()) {
      if (const auto seed = seed_number(name, oddities))
        submission.results.push_back(read_seed(result, seed, where(*seed), oddities));
    }
  } else if (listed->is_array()) {
    for (const Json& result : *listed) {
      const auto seed = Fields(result, "a result of seed_results ", oddities).count("seed");
      if (seed) {
        const auto number = static_cast<std::int64_t>(*seed);
        submission.results.push_back(read_seed(result, number, where(number), oddities));
      } else {
        oddities.emplace_back("a result of seed_results has no seed");
      }
    }
  } else {
    oddities.emplace_back("seed_results is neither an object nor a list");
  }
}

// The listed seeds; a single result that states no seed has the only one.
void read_seeds(const Json& listed, Submission& submission) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Json& seed : listed) {
    const bool fits = !seed.is_number_unsigned() || seed.get<std::uint64_t>() <= most;
    if (seed.is_number_integer() && fits) {
      submission.seeds.push_back(seed.get<std::int64_t>());
      continue;
    }
    submission.oddities.emplace_back("seeds has something other than whole numbers");
    const auto number =
        seed.is_string() ? seed_number(seed.get<std::string>(), submission.oddities) : std::nullopt;
    if (number) submission.seeds.push_back(*number);
  }
  if (submission.seeds.size() == 1 && submission.results.size() == 1 && !submission.results[0].seed)
    submission.results[0].seed = submission.seeds[0];
}

// What only this program writes.
void read_own_parts(const Fields& top, Submission& submission) {
  submission.environment = top.text("environment");
  if (const Json* json = top.find("budgets")) {
    const Fields fields(*json, "budgets.", submission.oddities);
    Budgets& budgets = submission.budgets.emplace();
    fields.read("train_seconds", budgets.train_seconds);
    fields.read("eval_seconds", budgets.eval_seconds);
    fields.read("artifact_bytes", budgets.artifact_bytes);
  }
  const Json* files = top.list("files");
  if (files == nullptr) return;
  for (const Json& json : *files) {
    const Fields fields(json, "a file of files: ", submission.oddities);
    submission.files.push_back(
        {fields.text("name"), fields.count("bytes").value_or(0), fields.text("sha256")});
  }
}

Submission submission_of(const Json& json) {
  Submission submission;
  const Fields top(json, "", submission.oddities);
  submission.own = json.contains("format") && json.at("format") == format_name;
  submission.author = top.text("author");
  submission.github_id = top.text("github_id");
  submission.name = top.text("name");
  submission.track = top.text("track");
  submission.val_loss = top.number("val_loss");
  for (const char* name : {"val_bpb", "val_bpb_mean", "mean_val_bpb"})
    if (!submission.val_bpb) submission.val_bpb = top.number(name);
  submission.val_loss_std = top.number("val_loss_std");
  submission.val_bpb_std = top.number("val_bpb_std");
  for (const char* name : {"bytes_total", "artifact_bytes_max"})
    if (!submission.bytes_total) submission.bytes_total = top.count(name);
  submission.bytes_code = top.count("bytes_code");
  read_results(json, top, submission);
  const Json* seeds = top.find("seeds");
  if (seeds != nullptr && !seeds->is_object() && top.list("seeds") != nullptr) read_seeds(*seeds, submission);
  if (submission.own) {
    read_own_parts(top, submission);
  } else {
    submission.non_record = speaks_of_no_record(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return submission;
}

}  // namespace

bool speaks_of_no_record(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(std::initializer_list<const char*>{"non-record", "non_record", "nonrecord"},
                             [&](const char* word) { return text.find(word) != std::string::npos; });
}

std::string artifact_name(const SeedResult& result) {
  return fmt::format("artifact_seed{}.mulligan", result.seed.value_or(0));
}

Json submission_json(const Submission& s) {
  Json results = Json::object(), files = Json::array();
  for (const SeedResult& result : s.results)
    results[std::to_string(result.seed.value_or(0))] = seed_json(result);
  for (const ShippedFile& file : s.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  Json json = {{"format", format_name}, {"author", s.author}, {"github_id", s.github_id}, {"name", s.name}};
  put(json, "blurb", s.blurb);
  json["date"] = s.date;
  json["track"] = s.track;
  put(json, "val_loss", s.val_loss);
  put(json, "val_bpb", s.val_bpb);
  put(json, "val_loss_std", s.val_loss_std);
  put(json, "val_bpb_std", s.val_bpb_std);
  json["seeds"] = s.seeds;
  json["seed_results"] = results;
  put(json, "bytes_total", s.bytes_total);
  put(json, "bytes_code", s.bytes_code);
  if (s.budgets) {
    json["budgets"] = {{"train_seconds", s.budgets->train_seconds},
                       {"eval_seconds", s.budgets->eval_seconds},
                       {"artifact_bytes", s.budgets->artifact_bytes}};
  }
  if (s.comparison) {
    const Comparison& c = *s.comparison;
    json["comparison"] = {{"name", c.name},
                          {"reference_bpb", c.reference_bpb},
                          {"margin_nats", c.margin_nats},
                          {"alpha", c.alpha},
                          {"paired", c.paired},
                          {"p", c.p},
                          {"accepted", c.accepted},
                          {"decision", c.decision},
                          {"notes", c.notes}};
  }
  put(json, "overlap", s.overlap);
  put(json, "hardware", s.hardware);
  put(json, "environment", s.environment);
  put(json, "software", s.software);
  put(json, "command", s.command);
  json["files"] = files;
  return json;
}

Submission read_submission(const std::filesystem::path& path) {
  return read_json_object<Json>(path, submission_of, "get the folder anew");
}

}  // namespace mulligan::record
