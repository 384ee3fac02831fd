#include "tools/cost/card.h"

#include <algorithm>

#include "framework/core/error.h"

namespace mulligan {
// Where the figures come from. None of them was measured by this project.
//
//   peaks      NVIDIA's data sheets: H100 SXM5, H200 SXM, A100 80GB SXM, B200 (as in a DGX B200), RTX 4090 (products
//              summed in fp32). Memory: the sheet's gigabytes.
//   sustained  A reading of the cuda backend's kernels at the record's shape took 2.75 TB/s on an H100, 82 %
//              of its peak, for kernels that stream; the same share is taken of the other cards' peaks.
//   products   From the same reading for cuBLASLt on an H100 at 98,304 tokens and width 512: 545 TFLOP/s for
//              the layers' products, 618 for the head's of 8,192 columns (rounded to 620). An H200 has the
//              same units and power. An A100: the same shares of its peak (55 and 63 %); its smaller matrix
//              units are easier to fill, so it may do better. fp32 products run on the ordinary units: 80 %
//              of their peak.
//   attention  cuDNN, heads of 64, packed documents, on an H100: 295 TFLOP/s forward, in the middle of what a
//              second reading found likely for these lengths, and 330 backward (of 4 and 10 operations), what
//              the first reading's milliseconds come to at its token-weighted length of 1,250. An A100: the
//              same shares. Our own kernel has no matrix units: a quarter of the fp32
//              peak, a guess.
//   launches   A kernel in a captured graph begins about 1.3 us after the one before it ended, and takes
//              about as long to fill and drain the card: an assumption, the same for all cards.
//   uploads    25 GB/s (PCIe 4.0 x16) and 55 (5.0) at best, 10 us each: an assumption.
//   fused      H100: 700 TFLOP/s and 2.9 TB/s, the best that large bf16 products and copies are commonly seen
//              to reach. The others: the same shares of their peaks (71 and 87 %). fp32: the peak. Attention with heads of
//              64: 370 TFLOP/s, the upper end of what published kernels reach there on an H100 (220 to 370, the
//              lower end backward); on an A100 about 190.
//   others     B200 and RTX 4090 have the H100's shares of their peaks in everything; nobody's reading of mulligan's kernels
//              stands behind that. Their links: twice NVLink 4, and what PCIe 4.0 x16 moves between two cards.
//   links      NCCL's all-reduce of large messages between the 8 cards of a node over NVLink, without
//              in-switch sums: about 360 GB/s on NVLink 4 and 230 on NVLink 3 (its "bus bandwidth").
const std::vector<Card>& known_cards() {
  static const std::vector<Card> cards = {
      {.name = "h100",
       .description = "NVIDIA H100 SXM",
       .bf16_flops_per_second = 989e12,
       .fp32_flops_per_second = 67e12,
       .bytes_per_second = 3.35e12,
       .memory_bytes = 80e9,
       .sustained_bytes_per_second = 2.75e12,
       .wide_product_flops_per_second = 620e12,
       .layer_product_flops_per_second = 545e12,
       .fp32_product_flops_per_second = 53e12,
       .attention_forward_flops_per_second = 295e12,
       .attention_backward_flops_per_second = 330e12,
       .own_attention_flops_per_second = 17e12,
       .launch_seconds = 2.6e-6,
       .upload_bytes_per_second = 55e9,
       .upload_seconds = 10e-6,
       .fused_bf16_flops_per_second = 700e12,
       .fused_fp32_flops_per_second = 67e12,
       .fused_attention_flops_per_second = 370e12,
       .fused_bytes_per_second = 2.9e12,
       .node_link_bytes_per_second = 360e9},
      {.name = "h200",
       .description = "NVIDIA H200",
       .bf16_flops_per_second = 989e12,
       .fp32_flops_per_second = 67e12,
       .bytes_per_second = 4.8e12,
       .memory_bytes = 141e9,
       .sustained_bytes_per_second = 3.94e12,
       .wide_product_flops_per_second = 620e12,
       .layer_product_flops_per_second = 545e12,
       .fp32_product_flops_per_second = 53e12,
       .attention_forward_flops_per_second = 295e12,
       .attention_backward_flops_per_second = 330e12,
       .own_attention_flops_per_second = 17e12,
       .launch_seconds = 2.6e-6,
       .upload_bytes_per_second = 55e9,
       .upload_seconds = 10e-6,
       .fused_bf16_flops_per_second = 700e12,
       .fused_fp32_flops_per_second = 67e12,
       .fused_attention_flops_per_second = 370e12,
       .fused_bytes_per_second = 4.16e12,
       .node_link_bytes_per_second = 360e9},
      {.name = "a100",
       .description = "NVIDIA A100 80GB SXM",
       .bf16_flops_per_second = 312e12,
       .fp32_flops_per_second = 19.5e12,
       .bytes_per_second = 2.04e12,
       .memory_bytes = 80e9,
       .sustained_bytes_per_second = 1.67e12,
       .wide_product_flops_per_second = 196e12,
       .layer_product_flops_per_second = 172e12,
       .fp32_product_flops_per_second = 15.6e12,
       .attention_forward_flops_per_second = 93e12,
       .attention_backward_flops_per_second = 104e12,
       .own_attention_flops_per_second = 4.9e12,
       .launch_seconds = 2.6e-6,
       .upload_bytes_per_second = 25e9,
       .upload_seconds = 10e-6,
       .fused_bf16_flops_per_second = 221e12,
       .fused_fp32_flops_per_second = 19.5e12,
       .fused_attention_flops_per_second = 190e12,
       .fused_bytes_per_second = 1.77e12,
       .node_link_bytes_per_second = 230e9},
      {.name = "b200",
       .description = "NVIDIA B200",
       .bf16_flops_per_second = 2250e12,
       .fp32_flops_per_second = 75e12,
       .bytes_per_second = 8e12,
       .memory_bytes = 180e9,
       .sustained_bytes_per_second = 6.56e12,
       .wide_product_flops_per_second = 1410e12,
       .layer_product_flops_per_second = 1240e12,
       .fp32_product_flops_per_second = 60e12,
       .attention_forward_flops_per_second = 671e12,
       .attention_backward_flops_per_second = 751e12,
       .own_attention_flops_per_second = 19e12,
       .launch_seconds = 2.6e-6,
       .upload_bytes_per_second = 55e9,
       .upload_seconds = 10e-6,
       .fused_bf16_flops_per_second = 1593e12,
       .fused_fp32_flops_per_second = 75e12,
       .fused_attention_flops_per_second = 842e12,
       .fused_bytes_per_second = 6.93e12,
       .node_link_bytes_per_second = 720e9},
      {.name = "rtx4090",
       .description = "NVIDIA GeForce RTX 4090",
       .bf16_flops_per_second = 165.2e12,
       .fp32_flops_per_second = 82.6e12,
       .bytes_per_second = 1.008e12,
       .memory_bytes = 24e9,
       .sustained_bytes_per_second = 0.827e12,
       .wide_product_flops_per_second = 103e12,
       .layer_product_flops_per_second = 91e12,
       .fp32_product_flops_per_second = 66e12,
       .attention_forward_flops_per_second = 49e12,
       .attention_backward_flops_per_second = 55e12,
       .own_attention_flops_per_second = 20.6e12,
       .launch_seconds = 2.6e-6,
       .upload_bytes_per_second = 25e9,
       .upload_seconds = 10e-6,
       .fused_bf16_flops_per_second = 117e12,
       .fused_fp32_flops_per_second = 82.6e12,
       .fused_attention_flops_per_second = 62e12,
       .fused_bytes_per_second = 0.873e12,
       .node_link_bytes_per_second = 20e9},
  };
  return cards;
}

std::string card_names() {
  std::string names;
  for (const Card& card : known_cards()) names += (names.empty() ? "" : ", ") + card.name;
  return names;
}

const Card& find_card(const std::string& name) {
  const auto found = std::ranges::find(known_cards(), name, &Card::name);
  if (found != known_cards().end()) return *found;
  throw config_error("the card '{}' is not known; choose one of: {}.", name, card_names());
}

}  // namespace mulligan
