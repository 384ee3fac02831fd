// Attention of the device's library, as far as it is wanted and to be had: its plans, one per shape, the
// boundaries that decide between them, and the rows that they are on the device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugins/backends/cuda/attention/segment_rows.h"
#include "plugins/backends/cuda/attention/segment_tables.h"
#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// [backend] attention, require_library and deterministic.
struct AttentionChoice {
  bool library = true;         // where the device has one
  bool required = false;       // a run without it is refused
  bool deterministic = false;  // a library's backward pass adds up in no fixed order
};

class AttentionLibrary {
 public:
  AttentionLibrary(Device& device, AttentionChoice choice)
      : device_(device), choice_(choice), rows_(device) {}
  ~AttentionLibrary();
  AttentionLibrary(const AttentionLibrary&) = delete;
  AttentionLibrary& operator=(const AttentionLibrary&) = delete;

  // False where the own kernel computes such calls by choice: f32, a backward pass that must be deterministic,
  // attention = "own". False, too, where the library cannot: f16, a width that is not a multiple of 16 up to
  // 128, more elements than 32 bits count, or a device without such a library: logged once, an exception
  // where the library is required.
  bool wanted(const AttentionShape& shape);
  // The most workspace that plans with this shape's direction, tokens, heads and width need; nothing where
  // the library has none of them, which the log then says, once. Makes no plan.
  std::optional<std::size_t> workspace_bytes(const AttentionShape& shape);
  // A plan() of it may follow, and begins to be made.
  void expect(const AttentionShape& shape);
  // All plans that were expected are made. Throws as plan().
  void finish_expected();
  // The plan for a shape, made once; null where the library has none, which the log then says, once, or where
  // one is required the exception.
  Attention* plan(const AttentionShape& shape);
  // Device memory for a plan of this shape, which needs more than was reserved for it: `bytes`, shared by all
  // such plans and kept, for captured work knows its address. Said once. Not while a graph is captured.
  void* more_workspace(const AttentionShape& shape, std::size_t bytes);
  // Of this shape there are more segments than the library is asked for. Throws where it is required; else the own kernel
  // computes them, which is logged once.
  void leave(const AttentionShape& shape);

  // The own kernel computes a wanted call, since only it rounds as model.attention says. Logged once.
  void leave_to_own_kernel();

  // No call adds up in an order that may differ from run to run.
  bool deterministic() const { return !choice_.library || choice_.deterministic; }
  // Shapes that plan() was asked for so far, those included that the library has no plan for.
  std::size_t plans() const { return plans_.size(); }

  SegmentTables& tables() { return tables_; }
  SegmentRowTables& rows() { return rows_; }
  // Bytes of the device were overwritten: from the host, or (`host` null) with what the host does not know.
  void written(const void* device, const void* host, std::size_t bytes) {
    tables_.written(device, host, bytes);
    rows_.written(device, bytes);
  }
  Device& device() { return device_; }

 private:
  bool available();
  // Why the library is not asked for this shape; empty: it is.
  static std::string unfit(const AttentionShape& shape);
  void say_once(const std::string& sentence);
  // The own kernel stands in for a library that the run could have, or the run is refused.
  void stand_in(const std::string& reason, const std::string& remedy);

  Device& device_;
  AttentionChoice choice_;
  SegmentTables tables_;
  SegmentRowTables rows_;
  std::map<AttentionShape, std::unique_ptr<Attention>> plans_;
  std::set<AttentionShape> expected_;
  std::vector<std::pair<std::size_t, void*>>
      workspaces_;  // bytes and address, each larger than the one before
  std::set<std::string> announced_;
  std::optional<bool> available_;
};

}  // namespace mulligan::cuda
