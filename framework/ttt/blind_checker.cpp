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

// Parts of the device's memory, one behind the other. Waits.
void download(Backend& backend, const std::vector<std::span<std::byte>>& parts, std::vector<std::byte>& to) {
  std::size_t bytes = 0, done = 0;
  for (const std::span<std::byte> part : parts) bytes += part.size();
  to.resize(bytes);
  for (const std::span<std::byte> part : parts) {
    backend.download(to.data() + done, part.data(), part.size());
    done += part.size();
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
  std::vector<std::byte> masters;
  download(model.store.backend(), master_memory(model), masters);
  link_.send({{"op", "weights"}}, masters);
  busy_ = true;
}

void BlindChecker::keep(const BaseModel& model, const AdapterSet& set, std::int64_t windows) {
  download(model.store.backend(), set.memory(windows), kept_);
}

void BlindChecker::submit(const SuffixCheck& check, const Case& turn, std::span<const float> losses,
                          const std::vector<std::vector<float>>& proposed) {
  while (busy_) hear(check);
  const std::size_t positions = turn.positions.size();
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
    json tokens_of = json::array();
    for (const auto& tokens : proposals) tokens_of.push_back(packed(std::span<const std::int32_t>(tokens)));
    list.push_back({{"tokens", packed(std::span<const std::int32_t>(pass.tokens))},
                    {"targets", packed(std::span<const std::int32_t>(targets))},
                    {"proposed", tokens_of}});
  }
  link_.send({{"op", "case"},
              {"documents", turn.documents},
              {"shape", {turn.shape.documents, turn.shape.context, turn.shape.scored}},
              {"positions", packed(turn.positions)},
              {"passes", list}},
             kept_);
  busy_ = true;
  expected_ = Expected{turn.sample, {losses.begin(), losses.end()}, proposed};
}

void BlindChecker::settle(const SuffixCheck& check, Until until) {
  while (busy_ && (until != Until::now || link_.ready())) hear(check);
  if (until == Until::end) kept_back_ = false;
  if (!busy_ && !kept_back_ && (until != Until::now || told_.entries.size() >= most_told)) flush_told();
  if (until == Until::now) return;
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
        "crashed there, or memory was short); start again, or say --audit same-process, which checks less.");
  }
  const json& head = answer->head;
  const std::string word = head.value("answer", "");
  if (word == "failed") {
    throw run_error("the process that checks scores of test-time training failed: {}",
                    head.value("sentence", ""));
  }
  if (word == "confined") {
    confinement_ = {head.value("files", false), head.value("sockets", false), head.value("missing", "")};
    return;
  }
  busy_ = false;
  if (const std::string problem = head.value("transform", ""); !problem.empty()) throw VoidRun(problem);
  if (word == "losses") compare(check, answer->payload);
}

void BlindChecker::compare(const SuffixCheck& check, std::span<const std::byte> answer) {
  const Expected expected = std::move(*expected_);
  expected_.reset();
  const std::size_t positions = expected.losses.size(), numbers = expected.proposed.size();
  const std::size_t passes = expected.sample.passes.size();
  if (answer.size() != passes * (1 + numbers) * positions * sizeof(float))
    throw run_error("the process that checks scores of test-time training answered something else.");
  std::vector<float> changed(positions);
  std::size_t at = 0;
  const auto next = [&] {
    std::memcpy(changed.data(), answer.data() + at, positions * sizeof(float));
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

void BlindChecker::flush_told() {
  // In messages of a bounded length; the digest is that of all proposals, so the last one has it.
  const std::span<const ToldLog::Entry> entries(told_.entries);
  for (std::size_t at = 0; at < entries.size(); at += most_told) {
    const std::size_t count = std::min(most_told, entries.size() - at);
    json message = {{"op", "told"}, {"entries", packed(entries.subspan(at, count))}};
    if (at + count == entries.size()) {
      message["digest"] = digest_;
      message["proposals"] = proposals_;
    }
    link_.send(message);
  }
  told_.entries.clear();
}

void BlindChecker::opened(std::int64_t number, const mlg_transform_text& text) {
  told_.entries.push_back(ToldLog::entry(ToldLog::open, number, text.vocabulary, text.tokens, text.places));
}

void BlindChecker::began(std::int64_t number, std::int64_t place, std::int32_t token) {
  told_.entries.push_back(ToldLog::entry(ToldLog::begin, number, place, token, 0));
}

void BlindChecker::told(std::int64_t number, std::int64_t place, std::int32_t token,
                        std::span<const mlg_bias> proposal) {
  digest_ = ToldLog::with(digest_, proposal);
  ++proposals_;
  told_.entries.push_back(ToldLog::entry(ToldLog::tell, number, place, token, 0));
}

}  // namespace mulligan
