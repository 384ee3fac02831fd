// BlindChecker: a second process of this program that scores sampled turns again without the later tokens.
//
// It has the configuration, the plugins, the weights and adapters as they are before a turn, and of the turn's
// windows the tokens before a cut: behind it are others. It never had the real ones, reads no validation
// data, and has no files and sockets (serve_blind_checks). So a score that comes out the same to the bit there
// was made from what it may know, whatever the plugins remember, read or tell each other. Score transforms
// are told the same tokens there in the same order, and every one of their proposals is compared.
//
// Before a turn is scored nothing shows whether it is checked: turns are handed over afterwards. And what
// transforms were told reaches the other process only when no turn is being scored there that could profit
// from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/core/sandbox.h"
#include "framework/plugin/plugin_host.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/blind_link.h"
#include "framework/ttt/causality.h"
#include "framework/ttt/score_transform.h"

namespace mulligan {

class BlindChecker : public TransformWitness {
 public:
  // Starts the process: `command` runs this program up to serve_blind_checks(). Throws run_error.
  explicit BlindChecker(const std::vector<std::string>& command) : link_(command) {}
  // The open file by which it is reached; keep the threads of plugins from it.
  int descriptor() const { return link_.descriptor(); }

  // The programs that it will need, and the masters of `model`. Before anything else.
  void begin(const BaseModel& model, const WindowShapes& shapes);
  // Masters have changed.
  void send_weights(const BaseModel& model, const SuffixCheck& check);

  // Keeps the adapters of the documents that have `windows` as they are before a turn is scored, for the case: in scoring, a
  // kernel could write into them what it has seen.
  void keep(const BaseModel& model, const AdapterSet& set, std::int64_t windows);
  // A turn whose adapters were kept.
  struct Case {
    std::int64_t documents = 0;  // of the batch
    WindowShape shape;
    const SuffixCheck::Sample& sample;
    std::span<const std::int32_t> positions, targets;
    // Proposed tokens by number; of each as many as positions.
    std::vector<std::vector<std::int32_t>> proposals;
  };
  // Has it scored there. Waits for an earlier one. `losses`, `proposed`: what it came to here, raw losses of the
  // targets, and of the proposed tokens by number.
  void submit(const SuffixCheck& check, const Case& turn, std::span<const float> losses,
              const std::vector<std::vector<float>>& proposed);
  // How much is waited for: what has come; all turns so far, which others are not to be met before; all of them.
  enum class Until { now, turns, end };
  // Throws VoidRun where scores or proposals differ, run_error where the process failed.
  void settle(const SuffixCheck& check, Until until);
  // What transforms are told is kept back until the end: they are told tokens ahead of their turns.
  void keep_back() { kept_back_ = true; }

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
  void compare(const SuffixCheck& check, std::span<const std::byte> answer);
  void flush_told();

  BlindLink link_;
  bool busy_ = false;  // an answer is to come
  bool kept_back_ = false;
  std::vector<std::byte> kept_;  // adapters, one tensor behind the other
  std::optional<Expected> expected_;
  Confinement confinement_;
  ToldLog told_;
  std::uint64_t digest_ = ToldLog::no_proposals;
  std::int64_t proposals_ = 0;
};

// The process at the other end: serves `link` until its other end goes. Confines itself before any plugin is loaded,
// and before the first score from all paths as well. Reads no data. What fails is reported to the other end.
void serve_blind_checks(BlindLink& link, LoadedConfig& loaded, PluginHost& host);

}  // namespace mulligan
