// CheckpointWriter: copies the state of training on the step path and writes it in the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/graph/tensor_store.h"

namespace mulligan {

// The bytes of a tensor of the store. Waits for the device.
std::vector<std::byte> download_bytes(const TensorStore& store, std::string_view name);

// A tensor in memory of the host. No bytes: not known on this rank.
struct HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;
};

// A whole tensor of the state of training, by its name in a checkpoint: tensor `source` of the store, or `host` if each rank has
// only a slice.
struct StateTensor {
  std::string name, source;
  std::shared_ptr<HostTensor> host = nullptr;  // null: the store has it whole

  const TensorType& type(const TensorStore& store) const { return host ? host->type : store.type(source); }
  // Its bytes; waits for the device. Throws std::logic_error if they are not known on this rank.
  std::vector<std::byte> read(const TensorStore& store) const;
  // Puts the bytes into the store or, for the ranks to share, on the host.
  void write(TensorStore& store, std::span<const std::byte> bytes) const;
};

// All functions are called from one thread.
class CheckpointWriter {
 public:
  // Writes checkpoints to `directory`, which is made when first needed, and keeps the newest `keep` (>= 1).
  CheckpointWriter(std::filesystem::path directory, std::int64_t keep)
      : directory_(std::move(directory)), keep_(keep) {}
  // Waits for a write in progress. Its failure is then lost, so call finish() first.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Whether a write is in progress, so that begin() must wait. At most one is.
  bool busy() const;
  // Copies `tensors` of `store` to host memory and starts to write them with `manifest`. The copy waits for the device; the memory
  // is allocated once. Tensors that are on the host already must not change until they are written. Precondition: not busy
  // (std::logic_error).
  void begin(CheckpointManifest manifest, const TensorStore& store, const std::vector<StateTensor>& tensors);

  // The checkpoint that was completed since the last call, if any. Does not wait. If a write failed, throws its run_error once.
  std::optional<std::filesystem::path> completed();
  // The same after it has waited for a write in progress.
  std::optional<std::filesystem::path> finish();

 private:
  std::vector<StoredTensor> copy_to_host(const TensorStore& store, const std::vector<StateTensor>& tensors);

  std::filesystem::path directory_;
  std::int64_t keep_;
  std::vector<std::vector<std::byte>> host_;  // one per tensor, kept between checkpoints
  std::future<std::filesystem::path> writing_;
};

// Gives `tensors` the values of a checkpoint. Throws data_error that names the tensor if one is missing, has another shape or
// dtype, or if the checkpoint holds another tensor. Then nothing has changed.
void restore_tensors(const Checkpoint& checkpoint, TensorStore& store,
                     const std::vector<StateTensor>& tensors);

// The shape of a tensor as files store it.
std::vector<std::int64_t> stored_shape(const TensorType& type);

}  // namespace mulligan
