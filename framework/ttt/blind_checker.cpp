#include "framework/ttt/blind_checker.h"

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {
namespace {

using nlohmann::json;

constexpr std::size_t most_told = 1 << 15;

template <typename T>
json packed(std::span<const T> values) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return json::binary(std::vector<std::uint8_t>(bytes, bytes + values.size_bytes()));
}

// Downloads these tensors, one behind the other.
void download(BlindLink& link, const TensorStore& store, const std::vector<std::string>& names,
              std::size_t least = 0) {
  std::size_t bytes = 0, done = 0;
  for (const std::string& name : names) bytes += static_cast<std::size_t>(store.type(name).bytes());
  const std::span<std::byte> memory = link.memory(std::max({bytes, least, std::size_t{1}}));
  for (const std::string& name : names) {
    const auto size = static_cast<std::size_t>(store.type(name).bytes());
    store.download(name, memory.subspan(done, size));
    done += size;
  }
}

}  // namespace

void BlindChecker::begin(const BaseModel& model, const WindowShapes& shapes) {
  json list = json::array();
  for (const auto& [documents, of_size] : shapes) {
    for (const WindowShape& shape : of_size)
      list.push_back({documents, shape.documents, shape.context, shape.scored});
  }
  link_.send({{"op", "plan"}, {"shapes", list}});
  put_weights(model);
}

void BlindChecker::send_weights(const BaseModel& model, const SuffixCheck& check) {
  while (busy_) hear(check);
  put_weights(model);
}

void BlindChecker::put_weights(const BaseModel& model) {
  std::vector<std::string> names;
  for (const ParameterLayout& layout : model.layouts) names.push_back(master_name(layout.spec.name));
  download(link_, model.store, names);
  link_.send({{"op", "weights"}});
  busy_ = true;
}

void BlindChecker::submit(const BaseModel& model, const SuffixCheck& check, const Case& turn) {
  while (busy_) hear(check);
  const std::size_t passes = turn.sample.passes.size(), positions = turn.positions.size();
  std::vector<std::string> names;
  for (const auto& tensor : turn.set.tensors()) names.push_back(tensor->master);
  // The losses come back in the same memory.
  download(link_, model.store, names, passes * (1 + turn.proposals.size()) * positions * sizeof(float));
  json list = json::array();
  for (const SuffixCheck::Pass& pass : turn.sample.passes) {
    // What is not compared is not told either.
    std::vector<std::int32_t> targets(positions, 0);
    std::vector<std::vector<std::int32_t>> proposals(turn.proposals.size(),
                                                     std::vector<std::int32_t>(positions, -1));
    for (const std::size_t place : pass.scores) {
      targets[place] = turn.targets[place];
      for (std::size_t number = 0; number < proposals.size(); ++number)
        proposals[number][place] = turn.proposals[number][place];
    }
    json proposed = json::array();
    for (const auto& tokens : proposals) proposed.push_back(packed(std::span<const std::int32_t>(tokens)));
    list.push_back({{"tokens", packed(std::span<const std::int32_t>(pass.tokens))},
                    {"targets", packed(std::span<const std::int32_t>(targets))},
                    {"proposed", proposed}});
  }
  link_.send({{"op", "case"},
              {"documents", turn.set.documents()},
              {"shape", {turn.shape.documents, turn.shape.context, turn.shape.scored}},
              {"positions", packed(turn.positions)},
              {"passes", list}});
  busy_ = true;
  expected_ = Expected{turn.sample, {}, {}};
}

void BlindChecker::expect(std::span<const float> losses, const std::vector<std::vector<float>>& proposed) {
  expected_->losses.assign(losses.begin(), losses.end());
  expected_->proposed = proposed;
}

void BlindChecker::settle(const SuffixCheck& check, bool wait) {
  while (busy_ && (wait || link_.ready())) hear(check);
  if (!wait) return;
  flush_told();
  link_.send({{"op", "finish"}});
  busy_ = true;
  while (busy_) hear(check);
}

// One answer.
void BlindChecker::hear(const SuffixCheck& check) {
  const auto answer = link_.receive();
  if (!answer) {
    throw run_error(
        "the process that checks scores of test-time training ended before its work was done (a plugin "
        "crashed "
        "there, or memory was short); start again, or say --audit same-process, which checks less.");
  }
  const std::string word = answer->value("answer", "");
  if (word == "failed") {
    throw run_error("the process that checks scores of test-time training failed: {}",
                    answer->value("sentence", ""));
  }
  if (word == "confined") {
    confinement_ = {answer->value("files", false), answer->value("sockets", false),
                    answer->value("missing", "")};
    return;
  }
  busy_ = false;
  if (const std::string problem = answer->value("transform", ""); !problem.empty()) throw VoidRun(problem);
  if (word == "losses") compare(check);
}

void BlindChecker::compare(const SuffixCheck& check) {
  const Expected expected = std::move(*expected_);
  expected_.reset();
  const std::size_t positions = expected.losses.size(), numbers = expected.proposed.size();
  const std::size_t passes = expected.sample.passes.size();
  const std::span<std::byte> memory = link_.memory(passes * (1 + numbers) * positions * sizeof(float));
  std::vector<float> changed(positions);
  std::size_t at = 0;
  const auto next = [&] {
    std::memcpy(changed.data(), memory.data() + at, positions * sizeof(float));
    at += positions * sizeof(float);
  };
  for (const SuffixCheck::Pass& pass : expected.sample.passes) {
    next();
    check.compare(expected.sample.turn, pass, expected.losses, changed);
    for (std::size_t number = 0; number < numbers; ++number) {
      next();
      check.compare(expected.sample.turn, pass, expected.proposed[number], changed);
    }
  }
}

void BlindChecker::note(const ToldLog::Entry& entry) {
  told_.entries.push_back(entry);
  if (told_.entries.size() >= most_told) flush_told();
}

void BlindChecker::flush_told() {
  if (told_.entries.empty()) return;
  link_.send({{"op", "told"},
              {"entries", packed(std::span<const ToldLog::Entry>(told_.entries))},
              {"digest", digest_},
              {"proposals", proposals_}});
  told_.entries.clear();
}

void BlindChecker::opened(std::int64_t number, const mlg_transform_text& text) {
  note({ToldLog::open, number, text.vocabulary, text.tokens, text.places});
}

void BlindChecker::began(std::int64_t number, std::int64_t place, std::int32_t token) {
  note({ToldLog::begin, number, place, token, 0});
}

void BlindChecker::told(std::int64_t number, std::int64_t place, std::int32_t token,
                        std::span<const mlg_bias> proposal) {
  digest_ = ToldLog::with(digest_, proposal);
  ++proposals_;
  note({ToldLog::tell, number, place, token, 0});
}

}  // namespace mulligan
