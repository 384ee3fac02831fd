// Communicator: the collectives of a run. The host runs them; plugins never do.
//
// Every rank makes the same calls in the same order. Collectives on tensors are enqueued in the order of the
// backend's kernels and do not wait; collectives on host values wait.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "framework/graph/tensor_store.h"

namespace mulligan {

enum class Reduction { sum, average };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // Replaces `tensor` (f32 or f64) on every rank by its reduction over all ranks, taken in rank order.
  virtual void all_reduce(TensorStore& store, std::string_view tensor, Reduction reduction) = 0;
  // Replaces `tensor` (any dtype) on every rank by that of rank `root`.
  virtual void broadcast(TensorStore& store, std::string_view tensor, int root) = 0;

  // Banks, cut along their first dimension of B entries into one slice of ceil(B / world_size) entries per
  // rank; the last slices may be padded. `full` is [B, ...], `slice` [ceil(B / world_size), ...], f32; they
  // may be the same tensor in a world of one.
  virtual void reduce_scatter(TensorStore& store, std::string_view full, std::string_view slice,
                              Reduction reduction) = 0;
  // The reverse: every rank's slice into `full` (f32 or bf16).
  virtual void all_gather(TensorStore& store, std::string_view slice, std::string_view full) = 0;

  // Returns when every rank has come here and the backend has finished its work.
  virtual void barrier(TensorStore& store) = 0;

  // Host values: the sum over ranks, in rank order; and rank 0's value, for decisions all ranks
  // must take alike.
  virtual void sum(std::span<double> values) = 0;
  virtual double agree(double value) = 0;
};

// The communicator of a run of one rank.
std::unique_ptr<Communicator> make_self_communicator();

// Rank 0 of `world_size` ranks that are not there, for plans: every collective is a std::logic_error.
std::unique_ptr<Communicator> make_planned_communicator(int world_size);

}  // namespace mulligan
