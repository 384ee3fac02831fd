// Mistakes that training programs have been published with, as changes of single kernel calls.
#pragma once

#include <mulligan/backend.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace planted {

constexpr const char* fault_names =
    "none|"
    "rope_pairs|"        // neighbouring elements are rotated together instead of (j, j + dims/2)
    "rope_head_0|"       // only the first head is rotated
    "not_causal|"        // a query sees the keys after it
    "across_documents|"  // attention ignores the boundaries of segments
    "unscaled_scores|"   // no 1/sqrt(head width)
    "unscaled_logits|"   // the head's logits are 8 times too large
    "no_softcap|"
    "no_final_norm|"
    "missing_bias|"  // of q, k and v, in a model that has one
    "transposed_o_proj|"
    "stale_logits|"       // an evaluation computes its logits once and then reads what lies there
    "unfinished_losses|"  // the last quarter of the token losses is not written
    "labels_are_inputs|"
    "shuffled_targets|"
    "short_gradients|"  // attention's gradient of q is a tenth too small
    "bf16_as_f16|"      // weights are read with the wrong dtype
    "no_two_alike|"     // results differ from run to run
    "rounded_matmuls|"  // matmuls in fp32 are computed in TF32
    "forgets|"          // what is downloaded of large tensors has one bit changed
    "swallows|"         // a call that cannot be is taken
    "nans|"             // one weight is none
    "mistakes";         // of a large tensor that is uploaded one bit is changed

// A call as it was recorded, with its addresses.
struct Bound {
  std::string kernel;
  std::vector<mlg_tensor> arguments;
  std::vector<std::string> attribute_names;
  std::vector<double> attributes;
  double attribute(std::string_view name) const;
};

// What is done in the place of a call; `real` runs it.
using Wrong = std::function<void(const Bound& call, const std::function<void()>& real)>;

// The rotation of q and k undone and made again, wrongly; attention with other keys.
void wrong_rotation(const Bound& call, std::string_view fault);
void wrong_attention(const Bound& call, std::string_view fault);
// The mean of both lanes without its norm.
void unnormed_lane_mean(const Bound& call);
// The first argument as it is, where the second or the third is the result.
void copied(const Bound& call, std::size_t result);
// The bits of a f32 rounded to bf16, read as f16.
float bf16_bits_as_f16(float value);

}  // namespace planted
