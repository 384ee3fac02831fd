// AdaptationRule: what a plugin's plan() chooses, from the plan of documents and the booked losses alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/plugin/ttt.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/document_plan.h"
#include "framework/ttt/score_book.h"

namespace mulligan {

// What is done on a chunk that was booked.
struct ChunkChoice {
  std::int64_t steps = 1;
  double lr_factor = 1;
  std::vector<double> weights;  // of the batch's documents, in the objective
};

class AdaptationRule {
 public:
  // `tensors`: of any set of adapters; empty where this rank has none. Asks for what all batches of `full`
  // documents inherit. The other arguments must outlive this object. Throws config_error for an impossible
  // answer, here and below.
  AdaptationRule(const TttPlugin& plugin, const DocumentPlan& plan, std::int64_t full,
                 const std::vector<std::shared_ptr<const AdapterTensor>>& tensors);

  // Null for a batch of another size, which has adapters of its own.
  const AdapterSet::Inheritance* inheritance(std::int64_t queue) const;
  // How many of the batches before `queue` draw first values of adapters.
  std::int64_t draws_before(std::int64_t queue) const;

  // A lane begins with new adapters.
  void begin_lane() { updates_.clear(); }
  void begin_batch(std::int64_t queue);
  // For the chunk of the batch that began last, whose losses are in the book.
  ChunkChoice choose(std::int64_t chunk, const ScoreBook& book);
  // Updates of batches of so many documents since the optimiser's state was last empty.
  std::int64_t updates(std::int64_t documents) { return updates_[documents]; }

  // Of all answers so far: a continued run compares it.
  std::uint64_t digest() const { return digest_; }
  // The choice for documents `shown` of the batch, as JSON for the audit log.
  std::string text(const ChunkChoice& choice, const std::vector<std::size_t>& shown) const;
  std::string text(const AdapterSet::Inheritance& inheritance) const;

 private:
  bool draws(std::int64_t queue) const;
  void note(double value);

  const TttPlugin& plugin_;
  const DocumentPlan& plan_;
  std::vector<std::shared_ptr<const AdapterTensor>> tensors_;
  std::map<std::int64_t, AdapterSet::Inheritance> inheritances_;  // by batch
  std::map<std::int64_t, std::int64_t> updates_;                  // by documents of a batch
  std::int64_t queue_ = -1;
  std::vector<std::vector<double>> losses_;  // by document of the batch and chunk
  std::uint64_t digest_ = 0xcbf29ce484222325u;
};

}  // namespace mulligan
