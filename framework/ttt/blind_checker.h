// BlindChecker: a second process of this program that scores sampled turns again, without having seen what
// follows.
//
// It has the configuration, the plugins, the weights and adapters as they are before a turn, and of the turn's
// windows the tokens before a cut: behind it are others. It never had the real ones, reads no validation
// data, and has no files and sockets (blind_service.h). So a score that comes out the same to the bit there
// was made from what it may know, whatever the plugins remember, read or tell each other. Score transforms
// are told the same tokens there in the same order, and every one of their proposals is compared.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/sandbox.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/blind_link.h"
#include "framework/ttt/suffix_check.h"
#include "framework/ttt/told_log.h"
#include "framework/ttt/transform_witness.h"

namespace mulligan {

class BlindChecker : public TransformWitness {
 public:
  // Starts the process: `command` runs this program up to serve_blind_checks(). Throws run_error.
  explicit BlindChecker(const std::vector<std::string>& command) : link_(command) {}

  // The programs that it will need, and the masters of `model`. Before anything else.
  void begin(const BaseModel& model, const WindowShapes& shapes);
  // Masters have changed.
  void send_weights(const BaseModel& model, const SuffixCheck& check);

  // A turn as it is before it is scored.
  struct Case {
    AdapterSet& set;
    WindowShape shape;
    const SuffixCheck::Sample& sample;
    std::span<const std::int32_t> positions, targets;
    // Proposed tokens by number; of each as many as positions.
    std::vector<std::vector<std::int32_t>> proposals;
  };
  // Has it scored there. Waits for an earlier one.
  void submit(const BaseModel& model, const SuffixCheck& check, const Case& turn);
  // What it came to here: raw losses of the targets, and of the proposed tokens by number.
  void expect(std::span<const float> losses, const std::vector<std::vector<float>>& proposed);
  // Looks at what has come; with `wait` at all that is still to come. Throws VoidRun where scores or proposals
  // differ, run_error where the process failed.
  void settle(const SuffixCheck& check, bool wait);

  // Of the process; known after the first settle() that waited.
  const Confinement& confinement() const { return confinement_; }
  std::int64_t proposals() const { return proposals_; }  // that were compared

  void opened(std::int64_t number, const mlg_transform_text& text) override;
  void began(std::int64_t number, std::int64_t place, std::int32_t token) override;
  void told(std::int64_t number, std::int64_t place, std::int32_t token,
            std::span<const mlg_bias> proposal) override;

 private:
  struct Expected {
    SuffixCheck::Sample sample;
    std::vector<float> losses;
    std::vector<std::vector<float>> proposed;
  };
  void put_weights(const BaseModel& model);
  void hear(const SuffixCheck& check);
  void compare(const SuffixCheck& check);
  void flush_told();
  void note(const ToldLog::Entry& entry);

  BlindLink link_;
  bool busy_ = false;  // the shared memory is the other process's
  std::optional<Expected> expected_;
  Confinement confinement_;
  ToldLog told_;
  std::uint64_t digest_ = ToldLog::no_proposals;
  std::int64_t proposals_ = 0;
};

}  // namespace mulligan
