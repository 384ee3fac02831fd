#include "framework/run/score_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/parse_json.h"
#include "framework/core/stop_request.h"
#include "framework/report/machine.h"

namespace mulligan {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* identity_key = "identity";
constexpr const char* state_seal_key = "sha256";
constexpr const char* remedy = "start without --resume";

// Of all that a state says: scores that were booked stand in it.
std::string state_seal_of(const std::vector<StoredTensor>& tensors,
                          std::map<std::string, std::string> metadata) {
  metadata.erase(state_seal_key);
  return sha256_hex(tensors_sha256(tensors) + Json(metadata).dump());
}

void require_unchanged(const SafetensorsFile& file) {
  const auto seal = file.metadata().find(state_seal_key);
  if (seal != file.metadata().end() && seal->second == state_seal_of(file.tensors(), file.metadata())) return;
  throw data_error("'{}' was changed after it was saved, or is damaged: its digest is of other figures; {}.",
                   file.path().string(), remedy);
}

// What of `identity` differs from that of a state; "" where nothing does.
std::string difference(const SafetensorsFile& file, const ScoreIdentity& identity) {
  const auto stored = file.metadata().find(identity_key);
  const Json theirs = stored == file.metadata().end() ? Json() : parse_json<Json>(stored->second);
  for (const auto& [what, digest] : identity) {
    if (!theirs.is_object() || !theirs.contains(what) || theirs[what] != digest) return what;
  }
  return {};
}

// The state that could be continued is not thrown away by forgetting --resume; any other one is of no use.
void refuse_to_replace(const std::filesystem::path& path, const ScoreIdentity& identity) {
  try {
    if (!std::filesystem::exists(path) || !difference(SafetensorsFile(path), identity).empty()) return;
  } catch (const Error&) {
    return;  // damaged
  }
  throw config_error(
      "'{}' is the unfinished state of this very scoring; continue it with --resume, or remove it "
      "to begin anew.",
      path.string());
}

}  // namespace

ScoreState::ScoreState(Options options)
    : options_(std::move(options)),
      digest_(sha256_hex(object_of(options_.identity).dump())),
      saved_at_(Clock::now()),
      booked_at_(saved_at_) {
  if (!options_.resume) {
    refuse_to_replace(options_.file, options_.identity);
    finish();
    return;
  }
  if (std::filesystem::exists(options_.file)) {
    found_.emplace(options_.file);
    const std::string other = difference(*found_, options_.identity);
    if (!other.empty()) {
      throw data_error(
          "'{}' is the state of another scoring, which differs in {}; {}, or go back to what it was of.",
          options_.file.string(), other, remedy);
    }
    require_unchanged(*found_);
  }
  read_seconds();
}

void ScoreState::read_seconds() {
  if (!std::filesystem::exists(seconds_file())) return;
  read_json_object<Json>(
      seconds_file(),
      [&](const Json& json) {
        if (json.at("identity_sha256") != digest_) return;
        for (const auto& [phase, seconds] : json.at("seconds").items())
          earlier_[phase] = std::max(0.0, seconds.get<double>());
      },
      remedy);
}

bool ScoreState::due() const {
  return options_.every_seconds > 0 &&
         std::chrono::duration<double>(Clock::now() - saved_at_).count() >= options_.every_seconds;
}

PhaseSeconds ScoreState::total(const PhaseSeconds& seconds) const {
  PhaseSeconds total = earlier_;
  for (const auto& [phase, amount] : seconds) total[phase] += amount;
  return total;
}

void ScoreState::save(const std::vector<StoredTensor>& tensors, std::map<std::string, std::string> metadata,
                      const PhaseSeconds& seconds) {
  metadata[identity_key] = object_of(options_.identity).dump();
  metadata[state_seal_key] = state_seal_of(tensors, metadata);
  std::filesystem::create_directories(options_.file.parent_path());
  write_safetensors(options_.file, tensors, metadata);
  saved_at_ = Clock::now();
  booked_at_ = {};
  book(seconds);
}

void ScoreState::book(const PhaseSeconds& seconds) {
  if (Clock::now() - booked_at_ < std::chrono::seconds(1)) return;
  booked_at_ = Clock::now();
  const Json json{{"identity_sha256", digest_}, {"seconds", object_of(total(seconds))}};
  write_file_atomically(seconds_file(), json.dump() + "\n");
}

void ScoreState::finish() {
  std::error_code ignored;  // there may be none
  std::filesystem::remove(options_.file, ignored);
  std::filesystem::remove(seconds_file(), ignored);
}

Error ScoreState::stopped() const {
  const std::string signal = signal_name(stop_signal());
  const bool saved = std::filesystem::exists(options_.file);
  return Error(
      ExitCode::interrupted,
      saved ? fmt::format("stopped by {}; the state is '{}'; continue with the same command and --resume.",
                          signal, options_.file.string())
            : fmt::format("stopped by {} before a state was saved; the same command begins anew.", signal));
}

namespace {

std::string_view bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

}  // namespace

ScoreIdentity score_identity(const LoadedConfig& loaded, ScoreCommand command, const PluginHost& host,
                             const TensorStore& store, const std::vector<ParameterLayout>& layouts,
                             std::span<const std::uint16_t> tokens) {
  std::string settings, weights, program = build_commit() + '\n';
  for (const auto& [key, value] : flat_settings(loaded)) {
    if (moves_score(key, command)) settings += key + " = " + value + '\n';
  }
  for (const ParameterLayout& layout : layouts) {
    const std::string name = master_name(layout.spec.name);
    weights += name + ' ' + sha256_hex(bytes_of(download_bytes(store, name))) + '\n';
  }
  for (const PluginHandle& plugin : host.loaded())
    program += std::string(plugin->name()) + ' ' + plugin->sha256() + '\n';
  const std::string& tokenizer = loaded.config.data.tokenizer;
  return {{"the settings", sha256_hex(settings)},
          {"the weights", sha256_hex(weights)},
          {"the validation tokens", sha256_hex(bytes_of(tokens))},
          {"the tokenizer", tokenizer.empty() ? "none" : sha256_hex_of_file(tokenizer)},
          {"the program or its plugins", sha256_hex(program)}};
}

}  // namespace mulligan
