// TttScorer: scores a validation set with test-time training.
//
// The host owns the order. For each batch of documents, and chunk by chunk from left to right:
//   score   the losses of the chunk's tokens, with the adapters as they are
//   book    enter them into the score book, for good
//   plan    the rule chooses from booked losses how its adapters learn from the chunk
//   reveal  give the chunk's tokens their weight in the objective
//   update  the adapters take a gradient step
// and between batches, at fixed counts of scored documents, the base model is trained on documents that were
// scored. Semantics: docs/record_run.md#test-time-training. Several ranks share the lanes: they meet before each
// training of the base model, which every one of them does, and at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "framework/ttt/adaptation_rule.h"
#include "framework/ttt/adapter_set.h"
#include "framework/ttt/base_training.h"
#include "framework/ttt/causality.h"
#include "framework/ttt/document_plan.h"
#include "framework/ttt/score_book.h"
#include "framework/ttt/score_transform.h"
#include "framework/ttt/ttt_report.h"

namespace mulligan {

class TransferBatch;

struct TttData {
  std::span<const std::uint16_t> tokens;  // the stream, cut to what is to be scored
  int bos_id = 1;
  const ByteCounter* bytes = nullptr;  // null: no bytes, so no bits per byte
  // Losses of the same windows without adaptation by stream position, NaN where there is none
  // (TttScorer::score_without); empty: no gain, no collapse detector.
  std::span<const float> without;
};

class TttScorer {
 public:
  // Plans every program, allocates all memory and probes the adapters for causality. All references must outlive
  // this object. The model's masters and copies must hold its weights. Throws config_error when a plugin does not
  // offer what it is used for, or reads ahead.
  TttScorer(const BaseModel& model, const TttSetup& setup, const TttData& data,
            TttListener* listener = nullptr);
  virtual ~TttScorer() = default;

  // Scores everything, or what follows `from`: to the bit as without an interruption; checks some windows on the way
  // (causality.h; throws InvalidRun where a score has read a later token). Once. Base-model phases change the masters.
  TttReport run(const TttStanding* from = nullptr);
  // Losses for TttData::without, of compared_chunks(); of several ranks all have them. Before run().
  std::vector<float> score_without();
  // Gives every rank all losses, by stream position. Before, at most one rank has a loss other than 0 at a position.
  // All ranks call this. Throws run_error if the transfer failed.
  void merge(std::vector<float>& losses);
  // What `without` then is; must outlive this object.
  void compare_with(std::span<const float> without) { data_.without = without; }
  // Called between two batches, where standing() may be asked for of a run of one rank, and before each
  // chunk; what they throw ends the run.
  void at_boundaries(std::function<void()> batch, std::function<void()> chunk) {
    at_boundary_ = std::move(batch);
    at_chunk_ = std::move(chunk);
  }
  TttStanding standing() const;

  const ScoreBook& book() const { return book_; }
  const DocumentPlan& documents() const { return plan_; }
  // The batches that this rank scores, in its order.
  const std::vector<std::int64_t>& own_batches() const { return own_; }
  // All that it runs; bound.
  const std::vector<Program*>& programs() const { return programs_; }
  // The adapters of batches of `documents` documents.
  AdapterSet& adapters(std::int64_t documents) { return *sets_.at(documents); }

 protected:
  struct Turn {
    const PlannedBatch& batch;
    std::int64_t queue = 0, chunk = 0;
    AdapterSet& set;
    WindowProgram& program;
    bool trains = false;  // some document has a later chunk
    bool revealed = false;
    std::span<const int> documents;      // that have a window: the last of the batch
    std::vector<ChunkWindow> windows{};  // one for each; without a chunk where the document is finished
    std::vector<TargetRange> ranges{};   // scored
    std::vector<bool> more{};            // whether the document has a later chunk
    // Of all windows (WindowProgram::set_inputs), and of the scored positions.
    std::vector<std::int32_t> tokens{}, positions{}, targets{};
    std::vector<std::vector<mlg_bias>> proposals{};
    std::vector<float> losses{}, plain_losses{};  // plain: without the score transform
    ChunkChoice choice{};

    std::size_t finished() const { return batch.documents.size() - documents.size(); }
    std::size_t score_of(std::size_t slot, std::int64_t target) const {
      return slot * static_cast<std::size_t>(program.shape().scored) +
             static_cast<std::size_t>(target - ranges[slot].first);
    }
  };
  virtual void take_turn(Turn& turn);
  // The steps of a turn. The book takes each token once; reveal() throws a std::logic_error for one that it lacks,
  // update() for a turn that was not revealed.
  void score(Turn& turn);
  void book(Turn& turn);
  void plan(Turn& turn);
  void reveal(Turn& turn);
  void update(Turn& turn);

 private:
  // ttt_scorer.cpp: the loop over batches, chunks and steps, and the parts of a turn
  bool is_own(std::int64_t queue) const;
  void score_batch(std::int64_t queue);
  void begin_lane(std::int64_t queue);
  AdapterSet& begin_batch(std::int64_t queue);
  std::int64_t draw_number(std::int64_t queue) const;
  Turn make_turn(std::int64_t queue, std::int64_t chunk, AdapterSet& set);
  SuffixCheck::Scores forward(const Turn& turn, std::span<const std::int32_t> tokens,
                              std::span<const std::int32_t> targets, bool with_normalisers);
  void tell(TttEventKind kind, const Turn& turn, bool only_more, std::string chosen = {});

  // the same: what lanes and ranks learn where they meet, and what follows from it
  void meet(const LanePlan::Stretch& stretch);
  void report_batch(std::int64_t queue, AdapterSet& set, double seconds);
  void report_stretch(const LanePlan::Stretch& stretch);
  void report_run();
  void report_batches();
  void watch_for_collapse(const TttBatchReport& batch);
  void merge_losses(const LanePlan::Stretch& stretch);
  void train_base(const LanePlan::Stretch& stretch);
  void tell(TttEvent event);
  bool buffers_events() const { return rank() > 0 && !setup_.config.audit.empty(); }

  // ttt_exchange.cpp: what goes to other ranks, and to the process that continues an interrupted run. An evaluation has its own
  // (launch/evaluator/ranks.cpp).
  std::int64_t rank() const;
  std::int64_t world_size() const;
  void prepare_exchange();
  void exchange(const LanePlan::Stretch& stretch);
  std::vector<std::string> standing_tensors() const;
  void restore(const TttStanding& from);
  void replay(std::int64_t queue, const TttStanding& from);

  // score_transform.cpp
  void prepare_transform();
  void propose(Turn& turn);
  void apply_proposals(Turn& turn, const SuffixCheck::Scores& scores);

  const BaseModel& model_;
  const TttSetup& setup_;
  TttData data_;
  TttListener* listener_;
  DocumentPlan plan_;
  LanePlan lanes_;
  std::vector<std::int64_t> own_;  // batches of this rank's lanes, in its order
  ScoreBook book_;
  std::map<std::int64_t, std::unique_ptr<AdapterSet>> sets_;  // by documents per batch
  std::unique_ptr<AdaptationRule> rule_;
  std::unique_ptr<BaseTraining> base_;
  std::vector<Program*> programs_;  // of sets_ and base_
  SharedArena arena_;
  SuffixCheck suffixes_;
  TttStanding now_;                        // done, report and pending; standing() adds the rest
  std::size_t stretch_ = 0;                // under way
  std::string invalid_reason_;             // why the scores of this rank must not be used
  std::vector<TttEvent> buffered_events_;  // since the last meeting
  std::shared_ptr<TransferBatch> sum_;     // of merge(), where there are several ranks
  std::function<void()> at_boundary_, at_chunk_;
  // Where there is a score transform:
  std::unique_ptr<TransformFeed> feed_;
  std::vector<float> plain_book_;  // losses without it of all that was booked, by stream position
};

}  // namespace mulligan
