// TttRun: scores a validation set with test-time training.
//
// The host owns the order. For each batch of documents, and chunk by chunk from left to right:
//   score   the losses of the chunk's tokens, with the adapters as they are
//   book    enter them into the score book, for good
//   reveal  give the chunk's tokens their weight in the objective
//   update  the adapters take a gradient step
// and between batches, at fixed counts of scored documents, the base model is trained on documents that were
// scored. Semantics: docs/record_run.md#test-time-training.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "framework/ttt/adapter_set.h"
#include "framework/ttt/base_training.h"
#include "framework/ttt/document_plan.h"
#include "framework/ttt/score_book.h"
#include "framework/ttt/suffix_check.h"
#include "framework/ttt/ttt_report.h"
#include "framework/ttt/ttt_standing.h"
#include "framework/ttt/turn_order.h"

namespace mulligan {

// Something that happened, in order.
struct TttEvent {
  enum class Kind { create, reset, score, book, reveal, update, phase, collapse, fallback };
  Kind kind = Kind::score;
  std::int64_t queue = -1, batch_index = -1, chunk = -1;
  std::span<const int> documents;  // numbers in the stream: those it concerns
  AdapterSet* adapters = nullptr;  // of create, reset, update
};
const char* event_name(TttEvent::Kind kind);

class TttListener {
 public:
  virtual ~TttListener() = default;
  virtual void on_event(const TttEvent&) {}
  virtual void on_batch(const TttBatchReport&) {}
  virtual void on_phase(const TttPhaseReport&) {}
};

struct TttSetup {
  const TttConfig& config;
  const TttPlugin& adapters;
  const Optimizer& optimizer;
  double lr = 0;                              // of the adapters
  const TttPlugin* base = nullptr;            // null: the base model is not trained
  const Optimizer* base_optimizer = nullptr;  // with the momentum that `base` asks for
  std::int64_t row_tokens = 0;  // of the base model's training rows: the evaluation's sequence length
  const AdapterDraws& draws;
};

struct TttData {
  std::span<const std::uint16_t> tokens;  // the stream, cut to what is to be scored
  int bos_id = 1;
  const ByteTable* bytes = nullptr;  // null: no bytes, so no bits per byte
  // Losses without test-time training by stream position, from a plain evaluation; empty: no reference,
  // no collapse detector.
  std::span<const float> reference;
};

class TttRun {
 public:
  // Plans every program and allocates all memory. All references must outlive this object. The model's
  // masters and copies must hold its weights. Throws config_error when a plugin does not offer what it
  // is used for.
  TttRun(const BaseModel& model, const TttSetup& setup, const TttData& data, TttListener* listener = nullptr);
  virtual ~TttRun() = default;

  // Probes the adapters for causality, then scores everything, or what follows `from`: to the bit as without
  // an interruption; checks some windows on the way (suffix_check.h; throws VoidRun where a score has read a
  // later token). Once. Base-model phases change the masters.
  TttReport run(const TttStanding* from = nullptr);
  // Called between two batches, where standing() may be asked for, and before each chunk; what they throw
  // ends the run.
  void at_boundaries(std::function<void()> batch, std::function<void()> chunk) {
    at_boundary_ = std::move(batch);
    at_chunk_ = std::move(chunk);
  }
  TttStanding standing() const;

  const ScoreBook& book() const { return book_; }
  const DocumentPlan& plan() const { return plan_; }
  // All that it runs; bound.
  const std::vector<Program*>& programs() const { return programs_; }
  // The adapters of batches of `documents` documents.
  AdapterSet& adapters(std::int64_t documents) { return *sets_.at(documents); }

 protected:
  // One chunk of one batch.
  struct Turn {
    struct Row {
      ChunkWindow window;
      bool active = false;  // has tokens in this chunk
      bool more = false;    // has a later chunk
    };
    const PlannedBatch& batch;
    std::int64_t queue = 0, chunk = 0;
    AdapterSet& set;
    WindowProgram& program;
    std::span<const int> documents;  // that have a window: the last of the batch
    std::vector<Row> rows;           // one for each
    bool trains = false;             // some document has a later chunk
  };
  virtual std::unique_ptr<TurnOrder> make_order() const { return std::make_unique<TurnOrder>(); }
  virtual void take_turn(Turn& turn);
  // The windows of a turn, for the check of its scores.
  std::vector<SuffixCheck::Window> windows_of(const Turn& turn) const;
  // The steps of a turn; each refuses to act out of order.
  void score(Turn& turn);
  void book(Turn& turn);
  void reveal(Turn& turn);
  void update(Turn& turn);

 private:
  void restore(const TttStanding& from, PhasePlan& phases);
  std::vector<std::string> standing_tensors() const;
  AdapterSet& begin_batch(std::int64_t queue);
  void score_batch(std::int64_t queue, AdapterSet& set);
  Turn make_turn(std::int64_t queue, std::int64_t chunk, AdapterSet& set);
  void fill_inputs(const Turn& turn);
  TttBatchReport report_batch(std::int64_t queue, AdapterSet& set, double seconds);
  void watch_for_collapse(const TttBatchReport& batch);
  void train_base(std::int64_t boundary, std::int64_t queue);
  std::vector<TttLengthBin> length_bins() const;
  void tell(TttEvent::Kind kind, const Turn& turn, bool only_more);
  void tell(const TttEvent& event);

  const BaseModel& model_;
  const TttSetup& setup_;
  TttData data_;
  TttListener* listener_;
  DocumentPlan plan_;
  ScoreBook book_;
  std::map<std::int64_t, std::unique_ptr<AdapterSet>> sets_;  // by documents per batch
  std::unique_ptr<BaseTraining> base_;
  std::vector<Program*> programs_;  // of sets_ and base_
  SharedArena arena_;
  std::unique_ptr<TurnOrder> order_;
  SuffixCheck suffixes_;
  std::vector<ScoredDocument> scored_;
  ScoreSums reference_;
  TttReport report_;
  std::int64_t draw_ = 0;  // number of the next draw event
  std::int64_t next_queue_ = 0;
  std::function<void()> at_boundary_, at_chunk_;
  std::vector<std::int32_t> tokens_, positions_, targets_;
  std::vector<float> losses_, weights_;
};

}  // namespace mulligan
