// Attention of one shape by cuDNN: its graph, planned, and how an execution lays out what it needs.
#pragma once

#include <optional>
#include <string>

#include "plugins/backends/cuda/gpu/cudnn/attention_graph.h"

namespace mulligan::cuda::cudnn {

// What plans are made for: a GPU's handle, or a described device (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) without one.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

class AttentionPlan {
 public:
  // The plan's own workspace, then what the graph keeps in workspace, for so many tokens.
  std::size_t workspace_bytes(std::int64_t tokens) const;

  // The memory and numbers that an execution over so many tokens gets, ready for cudnnBackendExecute.
  // `workspace` is aligned to 256 bytes. The numbers are the plan's own and live as long as it does.
  Descriptor pack(const Functions& functions, const AttentionArguments& arguments, std::int64_t tokens,
                  void* workspace) const;
  const Descriptor& descriptor() const { return plan_; }

 private:
  friend std::optional<AttentionPlan> make_attention_plan(const Functions&, const Target&,
                                                          const AttentionShape&, std::string&);
  AttentionPlan(AttentionGraph graph, Descriptor operations, Descriptor plan, std::size_t own_bytes,
                double scale);

  AttentionGraph graph_;
  Descriptor operations_;
  Descriptor plan_;  // the first of the engines that cuDNN proposes which takes the graph
  std::size_t own_bytes_;
  float scale_;
};

// What the plan for a shape needs at most, for that many tokens, known without making one: it depends on the
// direction, the tokens, the heads and the width.
std::size_t attention_workspace_bytes(const AttentionShape& shape);

// Nothing where cuDNN has no plan for the shape; then `reason` is a part of a sentence: "cuDNN 9.19.0 has no
// plan for it: ...".
std::optional<AttentionPlan> make_attention_plan(const Functions& functions, const Target& target,
                                                 const AttentionShape& shape, std::string& reason);

}  // namespace mulligan::cuda::cudnn
