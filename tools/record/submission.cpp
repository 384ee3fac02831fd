#include "tools/record/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "framework/core/json_file.h"

namespace mulligan::record {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "mulligan record 1";
constexpr std::uint64_t most_seed = std::numeric_limits<std::int64_t>::max();

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
  put(json, "val_loss", result.val_loss);
  put(json, "val_bpb", result.val_bpb);
  put(json, "artifact_bytes", result.artifact_bytes);
  put(json, "model_bytes", result.model_bytes);
  put(json, "code_bytes", result.code_bytes);
  put(json, "steps", result.steps);
  put(json, "step_avg_ms", result.step_avg_ms);
  put(json, "train_time_s", result.train_seconds);
  put(json, "eval_time_s", result.eval_seconds);
  put(json, "val_tokens", result.tokens);
  put(json, "val_bytes", result.bytes);
  put(json, "val_bpb_before_quantisation", result.val_bpb_before);
  put(json, "val_bpb_quantised", result.val_bpb_quantised);
  put(json, "artifact_sha256", result.artifact_sha256);
  put(json, "config_sha256", result.config_sha256);
  put(json, "log", result.log);
  return json;
}

// What a file of others says in another form than known: such a field is left out, and listed here. Files of
// this program have none: without a list they are refused.
using Oddities = std::vector<std::string>*;

void odd(Oddities oddities, std::string what) {
  if (oddities == nullptr) throw std::invalid_argument(what);
  oddities->push_back(std::move(what));
}

// The number that a text is from beginning to end.
std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return whole ? std::optional(value) : std::nullopt;
}

// Reads fields of an object; those of a wrong type are odd, and of others a number written as text is taken.
class Fields {
 public:
  Fields(const Json& json, std::string where, Oddities oddities)
      : json_(json), where_(std::move(where)), oddities_(oddities) {
    if (!json.is_object()) odd(oddities_, where_ + " is not an object");
  }
  bool has(const char* key) const {
    return json_.is_object() && json_.contains(key) && !json_.at(key).is_null();
  }
  std::string text(const char* key) const {
    if (!has(key)) return {};
    if (!json_.at(key).is_string()) return wrong(key, "text"), std::string();
    return json_.at(key).get<std::string>();
  }
  std::optional<double> number(const char* key) const {
    if (!has(key)) return {};
    const Json& value = json_.at(key);
    if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
    wrong(key, "a finite number");
    return value.is_string() ? number_of(value.get<std::string>()) : std::nullopt;
  }
  std::optional<std::uint64_t> count(const char* key) const {
    const std::optional<double> value = number(key);
    if (!value) return {};
    if (*value >= 0 && *value <= 1e15 && *value == std::floor(*value))
      return static_cast<std::uint64_t>(*value);
    wrong(key, "a count");
    return {};
  }
  bool flag(const char* key) const {
    if (!has(key)) return false;
    if (!json_.at(key).is_boolean()) return wrong(key, "true or false"), false;
    return json_.at(key).get<bool>();
  }
  const Json* list(const char* key) const {
    if (!has(key)) return nullptr;
    if (!json_.at(key).is_array()) return wrong(key, "a list"), nullptr;
    return &json_.at(key);
  }
  const Json* any(const char* key) const { return has(key) ? &json_.at(key) : nullptr; }

 private:
  void wrong(const char* key, const char* what) const {
    odd(oddities_, fmt::format("{}{} is not {}", where_, key, what));
  }
  const Json& json_;
  std::string where_;
  Oddities oddities_;
};

// "42"; of others also "seed_42", "seed42" and the like.
std::optional<std::int64_t> seed_number(const std::string& text, Oddities oddities) {
  const bool named = oddities != nullptr && (text.starts_with("seed") || text.starts_with("Seed"));
  const std::size_t begin = named ? text.find_first_of("0123456789") : 0;
  std::int64_t seed = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + std::min(begin, text.size()), last, seed);
  if (error == std::errc() && end == last) return seed;
  odd(oddities, fmt::format("seed_results has a seed '{}'", text));
  return {};
}

// The first of the fields that is there: names differ between publications.
std::optional<double> first_number(const Fields& fields, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const std::optional<double> value = fields.number(key)) return value;
  }
  return {};
}
std::optional<std::uint64_t> first_count(const Fields& fields, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const std::optional<std::uint64_t> value = fields.count(key)) return value;
  }
  return {};
}

// Seconds under the first of these names; under those that end in "_ms" milliseconds.
std::optional<double> first_seconds(const Fields& fields, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const bool milliseconds = std::string_view(key).ends_with("_ms");
    if (const auto value = fields.number(key)) return milliseconds ? *value / 1000 : *value;
  }
  return {};
}

constexpr auto artifact_keys = {"artifact_bytes", "bytes_total", "submission_bytes", "artifact_size_bytes"},
               train_keys = {"train_time_s", "train_seconds", "train_time_seconds", "wallclock_seconds",
                             "train_time_ms"},
               eval_keys = {"eval_time_s", "eval_seconds", "eval_time_seconds", "eval_time_ms"};

// Figures of others that stand at the top by seed: "artifact_bytes": {"42": 15978915, ...}.
template <typename Value, typename Read>
void take_by_seed(const Fields& top, std::initializer_list<const char*> keys,
                  std::vector<SeedResult>& results, std::optional<Value> SeedResult::*figure,
                  Oddities oddities, Read&& read) {
  for (const char* key : keys) {
    const Json* by_seed = top.any(key);
    if (by_seed == nullptr || !by_seed->is_object()) continue;
    const Fields fields(*by_seed, fmt::format("{}.", key), oddities);
    for (const auto& [name, value] : by_seed->items()) {
      const auto seed = seed_number(name, oddities);
      const auto result = std::ranges::find(results, seed, &SeedResult::seed);
      if (!seed || result == results.end() || (*result).*figure) continue;
      if (const auto found = read(fields, name.c_str()))
        (*result).*figure = std::string_view(key).ends_with("_ms") ? *found / 1000 : *found;
    }
  }
}

SeedResult read_seed(const Json& json, std::optional<std::int64_t> seed, const std::string& where,
                     Oddities oddities) {
  SeedResult result;
  result.seed = seed;
  if (json.is_number()) {
    result.val_bpb = json.get<double>();
    return result;
  }
  const Fields fields(json, where, oddities);
  result.val_loss = fields.number("val_loss");
  result.val_bpb =
      first_number(fields, {"val_bpb", "bpb", "post_ttt_bpb", "post_ttt_val_bpb", "quantized_ttt_val_bpb"});
  result.tokens = fields.count("val_tokens");
  result.bytes = fields.count("val_bytes");
  result.artifact_bytes = first_count(fields, artifact_keys);
  result.model_bytes = first_count(fields, {"model_bytes", "bytes_model_int8_zlib"});
  result.code_bytes = first_count(fields, {"code_bytes", "bytes_code"});
  if (const auto steps = first_count(fields, {"steps", "step_stop"}))
    result.steps = static_cast<std::int64_t>(*steps);
  result.step_avg_ms = fields.number("step_avg_ms");
  result.train_seconds = first_seconds(fields, train_keys);
  result.eval_seconds = first_seconds(fields, eval_keys);
  result.val_bpb_before = fields.number("val_bpb_before_quantisation");
  result.val_bpb_quantised = fields.number("val_bpb_quantised");
  result.artifact_sha256 = fields.text("artifact_sha256");
  result.config_sha256 = fields.text("config_sha256");
  result.log = fields.text("log");
  return result;
}

// Where others state their seeds: `per_seed`, `seeds` as an object by seed, `results` as a list with seeds; null:
// nowhere known.
const Json* other_results(const Fields& top) {
  for (const char* key : {"per_seed", "seeds", "results"}) {
    const Json* listed = top.any(key);
    if (listed == nullptr || listed->empty()) continue;
    const auto has_seed = [](const Json& one) { return one.is_object() && one.contains("seed"); };
    if (listed->is_object() && key != std::string_view("results")) return listed;
    if (listed->is_array() && std::all_of(listed->begin(), listed->end(), has_seed)) return listed;
  }
  return nullptr;
}

std::vector<SeedResult> read_results(const Json& json, const Fields& top, Oddities oddities) {
  std::vector<SeedResult> results;
  const Json* listed = top.any("seed_results");
  if (listed == nullptr && oddities != nullptr) listed = other_results(top);
  if (listed == nullptr) {
    results.push_back(read_seed(json, {}, "", oddities));
  } else if (listed->is_object()) {
    for (const auto& [name, result] : listed->items()) {
      const auto seed = seed_number(name, oddities);
      if (seed) results.push_back(read_seed(result, seed, fmt::format("seed_results.{}.", name), oddities));
    }
  } else if (listed->is_array()) {
    for (const Json& result : *listed) {
      const auto seed = Fields(result, "a result of seed_results ", oddities).count("seed");
      if (!seed) {
        odd(oddities, "a result of seed_results has no seed");
        continue;
      }
      results.push_back(read_seed(result, static_cast<std::int64_t>(*seed),
                                  fmt::format("seed_results.{}.", *seed), oddities));
    }
  } else {
    odd(oddities, "seed_results is neither an object nor a list");
  }
  return results;
}

Comparison read_comparison(const Json& json) {
  const Fields fields(json, "comparison.", nullptr);
  Comparison comparison;
  comparison.name = fields.text("name");
  if (const Json* values = fields.list("reference_bpb"))
    comparison.reference_bpb = values->get<std::vector<double>>();
  comparison.bytes_per_token = fields.number("bytes_per_token").value_or(0);
  comparison.margin_nats = fields.number("margin_nats").value_or(comparison.margin_nats);
  comparison.alpha = fields.number("alpha").value_or(comparison.alpha);
  comparison.paired = fields.flag("paired");
  comparison.accepted = fields.flag("accepted");
  comparison.p = fields.number("p").value_or(1);
  comparison.difference_nats = fields.number("difference_nats").value_or(0);
  comparison.difference_bpb = fields.number("difference_bpb").value_or(0);
  comparison.decision = fields.text("decision");
  if (const Json* notes = fields.list("notes")) comparison.notes = notes->get<std::vector<std::string>>();
  return comparison;
}

// What is missing is taken for the worst.
TextOverlap read_overlap(const Fields& fields) {
  TextOverlap overlap;
  overlap.similar = fields.number("share").value_or(1);
  overlap.copied = fields.number("copied").value_or(1);
  overlap.pieces = fields.number("pieces").value_or(1);
  overlap.training = fields.number("training").value_or(1);
  overlap.validation_tokens = fields.count("validation_tokens").value_or(0);
  overlap.training_tokens = fields.count("training_tokens").value_or(0);
  overlap.validation_read = fields.count("validation_read").value_or(0);
  overlap.training_read = fields.count("training_read").value_or(0);
  overlap.passages = static_cast<std::int64_t>(fields.count("passages").value_or(0));
  overlap.pieces_passages = static_cast<std::int64_t>(fields.count("pieces_passages").value_or(0));
  overlap.training_passages = static_cast<std::int64_t>(fields.count("training_passages").value_or(0));
  return overlap;
}

void read_own_parts(const Fields& top, Submission& submission) {
  if (const Json* json = top.any("budgets")) {
    const Fields fields(*json, "budgets.", nullptr);
    Budgets budgets;
    budgets.train_seconds = fields.number("train_seconds").value_or(budgets.train_seconds);
    budgets.eval_seconds = fields.number("eval_seconds").value_or(budgets.eval_seconds);
    budgets.artifact_bytes = fields.count("artifact_bytes").value_or(budgets.artifact_bytes);
    submission.budgets = budgets;
  }
  if (const Json* json = top.any("comparison")) submission.comparison = read_comparison(*json);
  if (const Json* json = top.any("overlap")) {
    const Fields fields(*json, "overlap.", nullptr);
    submission.overlap = read_overlap(fields);
  }
  if (const Json* json = top.any("data")) {
    const Fields fields(*json, "data.", nullptr);
    submission.data = {fields.text("train_sha256"), fields.text("validation_sha256"),
                       fields.text("tokenizer_sha256")};
  }
  if (const Json* files = top.list("files")) {
    for (const Json& json : *files) {
      const Fields fields(json, "a file of files: ", nullptr);
      submission.files.push_back(
          {fields.text("name"), fields.count("bytes").value_or(0), fields.text("sha256")});
    }
  }
  submission.command = top.text("command");
  submission.config_sha256 = top.text("config_sha256");
  submission.source_sha256 = top.text("source_sha256");
}

// The first field of `json` that `written` has not, or has otherwise, with the names that lead there. An absent
// value (null) says nothing.
std::string other_field(const Json& json, const Json& written, const std::string& where) {
  if (json.is_null()) return {};
  if (json.type() == written.type() && (json.is_object() || json.is_array())) {
    if (json.is_array() && json.size() != written.size()) return where;
    for (const auto& [name, value] : json.items()) {
      const std::string inner = where.empty() ? name : where + "." + name;
      const bool known = json.is_array() || written.contains(name);
      const Json& other = !known ? Json() : json.is_array() ? written.at(std::stoul(name)) : written.at(name);
      if (const std::string found = known || value.is_null() ? other_field(value, other, inner) : inner;
          !found.empty())
        return found;
    }
    return {};
  }
  return json == written ? std::string() : where;
}

// The listed seeds; a single result that says no seed has the only one.
void read_seeds(const Json& listed, Submission& submission, Oddities oddities) {
  for (const Json& seed : listed) {
    const bool fits = !seed.is_number_unsigned() || seed.get<std::uint64_t>() <= most_seed;
    if (seed.is_number_integer() && fits) {
      submission.seeds.push_back(seed.get<std::int64_t>());
    } else {
      odd(oddities, "seeds has something other than whole numbers");
      const auto number = seed.is_string() ? seed_number(seed.get<std::string>(), oddities) : std::nullopt;
      if (number) submission.seeds.push_back(*number);
    }
  }
  if (submission.seeds.size() == 1 && submission.results.size() == 1 && !submission.results[0].seed)
    submission.results[0].seed = submission.seeds[0];
}

Submission submission_of(const Json& json, bool own_files) {
  Submission submission;
  submission.stated_format = json.contains("format") && json.at("format") == format_name;
  submission.own = submission.stated_format || own_files || json.contains("config_sha256") ||
                   json.contains("source_sha256");
  const Oddities oddities = submission.own ? nullptr : &submission.oddities;
  const Fields top(json, "", oddities);
  submission.author = top.text("author");
  submission.github_id = top.text("github_id");
  submission.name = top.text("name");
  submission.val_loss = top.number("val_loss");
  submission.val_bpb =
      submission.own ? top.number("val_bpb") : first_number(top, {"val_bpb", "val_bpb_mean", "mean_val_bpb"});
  submission.val_loss_std = top.number("val_loss_std");
  submission.val_bpb_std = top.number("val_bpb_std");
  submission.bytes_total = first_count(top, {"bytes_total", "artifact_bytes_max"});
  submission.bytes_code = top.count("bytes_code");
  submission.results = read_results(json, top, oddities);
  // Others also state the results by seed there.
  const bool by_seed = !submission.own && top.any("seeds") && top.any("seeds")->is_object();
  const Json* seeds = by_seed ? nullptr : top.list("seeds");
  if (seeds != nullptr) read_seeds(*seeds, submission, oddities);
  submission.track = top.text("track");
  if (!submission.own) {  // others use the same words for other things
    const auto number = [](const Fields& fields, const char* key) { return fields.number(key); };
    take_by_seed(top, artifact_keys, submission.results, &SeedResult::artifact_bytes, oddities,
                 [](const Fields& fields, const char* key) { return fields.count(key); });
    take_by_seed(top, train_keys, submission.results, &SeedResult::train_seconds, oddities, number);
    take_by_seed(top, eval_keys, submission.results, &SeedResult::eval_seconds, oddities, number);
    const std::string all = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    submission.non_record = speaks_of_no_record(all);
    return submission;
  }
  submission.blurb = top.text("blurb");
  submission.date = top.text("date");
  submission.hardware = top.text("hardware");
  submission.software = top.text("software");
  read_own_parts(top, submission);
  Json claimed = json, written = submission_json(submission);
  claimed.erase("format");  // R01 says where it is missing
  submission.unwritten = other_field(claimed, written, "");
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
                          {"bytes_per_token", c.bytes_per_token},
                          {"margin_nats", c.margin_nats},
                          {"alpha", c.alpha},
                          {"paired", c.paired},
                          {"accepted", c.accepted},
                          {"p", c.p},
                          {"difference_nats", c.difference_nats},
                          {"difference_bpb", c.difference_bpb},
                          {"decision", c.decision},
                          {"notes", c.notes}};
  }
  if (s.overlap) json["overlap"] = to_json(*s.overlap);
  if (!s.data.empty()) {
    json["data"] = {{"train_sha256", s.data.train},
                    {"validation_sha256", s.data.validation},
                    {"tokenizer_sha256", s.data.tokenizer}};
  }
  put(json, "hardware", s.hardware);
  put(json, "software", s.software);
  put(json, "command", s.command);
  put(json, "config_sha256", s.config_sha256);
  put(json, "source_sha256", s.source_sha256);
  json["files"] = files;
  return json;
}

Submission read_submission(const std::filesystem::path& path, bool own_files) {
  return read_json_object<Json>(
      path,
      [&](const Json& json) {
        try {
          return submission_of(json, own_files);
        } catch (const std::exception& error) {
          throw data_error("'{}' is not a submission: {}; fix that field.", path.string(), error.what());
        }
      },
      "get the folder anew");
}

}  // namespace mulligan::record
