// The cards that costs are estimated for: their makers' figures, and rates expected in a training step.
#pragma once

#include <string>
#include <vector>

namespace mulligan {

struct Card {
  std::string name;         // "h100"
  std::string description;  // "NVIDIA H100 SXM"

  // Peak rates, dense (no sparsity), from its maker's data sheet: the limits of a roofline.
  double bf16_flops_per_second = 0;
  double fp32_flops_per_second = 0;
  double bytes_per_second = 0;
  double memory_bytes = 0;
  double cache_bytes = 0;  // the second-level cache, shared by all multiprocessors

  // What a step is expected to reach; card.cpp says where each comes from.
  double sustained_bytes_per_second = 0;          // kernels that read and write memory once
  double wide_product_flops_per_second = 0;       // bf16, ProductClass::wide
  double layer_product_flops_per_second = 0;      // bf16, ProductClass::layer
  double fp32_product_flops_per_second = 0;       // any shape
  double attention_forward_flops_per_second = 0;  // bf16, of a library
  double attention_backward_flops_per_second = 0;
  double own_attention_flops_per_second = 0;  // of the backend's own kernel, which has no matrix units
  double launch_seconds = 0;                  // what a kernel of a captured graph costs besides its work
  double upload_bytes_per_second = 0;         // from the host's page-locked memory
  double upload_seconds = 0;                  // what an upload costs besides its bytes

  // Between the cards of one node, of one card in one direction, as ring collectives reach it.
  double node_link_bytes_per_second = 0;
};

// The first is the default.
const std::vector<Card>& known_cards();
// Throws config_error listing the known cards.
const Card& find_card(const std::string& name);
// "h100, h200, ...", for help texts.
std::string card_names();

}  // namespace mulligan
