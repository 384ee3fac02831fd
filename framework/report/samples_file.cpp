#include "framework/report/samples_file.h"

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/report/json_lines.h"
#include "framework/report/json_lines_writer.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

void add_sample(const std::filesystem::path& path, const TextSample& sample) {
  const Json json{{"weights", sample.weights}, {"prompt", sample.prompt},           {"text", sample.text},
                  {"tokens", sample.tokens},   {"temperature", sample.temperature}, {"seed", sample.seed}};
  JsonLinesWriter(path, JsonLinesWriter::Start::append)
      .write(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<TextSample> read_samples(const std::filesystem::path& path) {
  std::vector<TextSample> samples;
  if (!std::filesystem::exists(path)) return samples;
  read_json_lines(read_file(path, std::uint64_t{64} << 20), path.string(), [&](const Json& json) {
    samples.push_back({json.at("weights"), json.at("prompt"), json.at("text"), json.at("tokens"),
                       json.at("temperature"), json.at("seed")});
  });
  return samples;
}

}  // namespace mulligan
