#include "framework/data/data_identity.h"

#include <fmt/ranges.h>
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "framework/core/sha256.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;

Json set_json(const ShardSetIdentity& set) {
  Json json{{"tokens", set.tokens}, {"sha256", set.sha256}};
  for (const ShardIdentity& shard : set.shards)
    json["shards"].push_back({{"name", shard.name}, {"tokens", shard.tokens}, {"sha256", shard.sha256}});
  return json;
}

// A member that may be absent. Throws Json::exception for another type.
template <typename T>
T member(const Json& json, const char* key) {
  const auto found = json.get_ref<const Json::object_t&>().find(key);
  return found == json.get_ref<const Json::object_t&>().end() ? T() : found->second.get_ref<const T&>();
}

std::string sha256_member(const Json& json, const char* key) {
  std::string value = member<std::string>(json, key);
  const bool digits = value.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (value.empty() || (value.size() == 64 && digits)) return value;
  throw std::invalid_argument(fmt::format("'{}' is not a sha256", key));
}

ShardSetIdentity read_set(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  const Json& set = json.at(key);
  ShardSetIdentity read{member<Json::number_unsigned_t>(set, "tokens"), sha256_member(set, "sha256"), {}};
  for (const Json& shard : member<Json::array_t>(set, "shards")) {
    read.shards.push_back({member<std::string>(shard, "name"),
                           member<Json::number_unsigned_t>(shard, "tokens"), sha256_member(shard, "sha256")});
  }
  return read;
}

}  // namespace

ShardSetIdentity shard_set(std::vector<ShardIdentity> shards) {
  ShardSetIdentity set;
  Sha256 hash;
  for (const ShardIdentity& shard : shards) {
    set.tokens += shard.tokens;
    hash.update(shard.sha256 + "\n");
  }
  if (!shards.empty()) set.sha256 = hash.hex();
  set.shards = std::move(shards);
  return set;
}

Json to_json(const DataIdentity& data) {
  return {{"tokenizer_sha256", data.tokenizer_sha256},
          {"byte_table_sha256", data.byte_table_sha256},
          {"packing", data.packing},
          {"train", set_json(data.train)},
          {"validation", set_json(data.validation)}};
}

std::string to_json_text(const DataIdentity& data) {
  return to_json(data).dump();
}

DataIdentity without_shards(DataIdentity data) {
  data.train.shards.clear();
  data.validation.shards.clear();
  return data;
}

DataIdentity data_identity_from_json(const Json& json, const std::string& source) {
  try {
    return {sha256_member(json, "tokenizer_sha256"), sha256_member(json, "byte_table_sha256"),
            member<std::string>(json, "packing"), read_set(json, "train"), read_set(json, "validation")};
  } catch (const std::exception& error) {
    throw data_error("{} says of its data what mulligan does not write ({}); make it again or copy it again",
                     source, error.what());
  }
}

DataIdentity data_identity_from_text(const std::string& json, const std::string& source) {
  return data_identity_from_json(parse_json<Json>(json), source);
}

std::string validation_difference(const DataIdentity& weights, const DataIdentity& now) {
  if (weights.validation.sha256.empty()) return "the weights do not say which validation set was theirs";
  std::vector<std::string> parts;
  if (weights.validation.sha256 != now.validation.sha256) {
    parts.push_back(fmt::format("validation shards {} ({} tokens) instead of {} ({} tokens)",
                                short_digest(now.validation.sha256), now.validation.tokens,
                                short_digest(weights.validation.sha256), weights.validation.tokens));
  }
  if (weights.byte_table_sha256 != now.byte_table_sha256) {
    parts.push_back(fmt::format("byte table {} instead of {}", short_digest(now.byte_table_sha256),
                                short_digest(weights.byte_table_sha256)));
  }
  if (!weights.packing.empty() && !now.packing.empty() && weights.packing != now.packing)
    parts.push_back(fmt::format("{} instead of {}", now.packing, weights.packing));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void require_same_tokenizer(const DataOrigin& origin, const DataIdentity& now,
                            const std::string& tokenizer_file) {
  const std::string& theirs = origin.data.tokenizer_sha256;
  if (theirs.empty()) {
    if (tokenizer_file.empty()) return;
    throw data_error(
        "{} carries no digest of its tokenizer, so whether data.tokenizer = '{}' is the right one is not "
        "known; make it again, or score the loss alone with --set data.tokenizer=",
        origin.name, tokenizer_file);
  }
  if (now.tokenizer_sha256.empty() || now.tokenizer_sha256 == theirs) return;
  throw data_error(
      "the tokenizer {} has sha256 {}, but {} was made with {}; name that one with --set "
      "data.tokenizer=FILE{}",
      tokenizer_file.empty() ? "of the shards' manifest" : "'" + tokenizer_file + "'",
      short_digest(now.tokenizer_sha256), origin.name, short_digest(theirs),
      tokenizer_file.empty() ? " and its shards with data.validation" : "");
}

void require_same_training_shards(const DataOrigin& origin, const ShardSetIdentity& now) {
  const ShardSetIdentity& saved = origin.data.train;
  if (saved.sha256.empty() || now.sha256.empty() || saved.sha256 == now.sha256) return;
  const auto [was, is] =
      std::ranges::mismatch(saved.shards, now.shards, {}, &ShardIdentity::sha256, &ShardIdentity::sha256);
  data_error_if(was == saved.shards.end(),
                "data.train names {} training shards, but {} has read {}; name exactly those",
                now.shards.size(), origin.name, saved.shards.size());
  data_error_if(
      is == now.shards.end(),
      "the training shard '{}' of {} is not among the {} that data.train names; bring that file back or name "
      "its folder in data.train",
      was->name, origin.name, now.shards.size());
  throw data_error(
      "the training shard '{}' has sha256 {}, but {} has read '{}' with {} in its place; bring that file "
      "back or name its folder in data.train",
      is->name, short_digest(is->sha256), origin.name, was->name, short_digest(was->sha256));
}

void require_apart(const ShardSetIdentity& train, const ShardSetIdentity& validation) {
  for (const ShardIdentity& shard : train.shards) {
    const auto same = std::ranges::find(validation.shards, shard.sha256, &ShardIdentity::sha256);
    if (same == validation.shards.end()) continue;
    throw data_error(
        "the training shard '{}' holds exactly what the validation shard '{}' does (sha256 {}), so the score "
        "would be of text that was trained on; name training shards in data.train and others in "
        "data.validation",
        shard.name, same->name, short_digest(shard.sha256));
  }
}

}  // namespace mulligan
