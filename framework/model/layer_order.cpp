#include "framework/model/parameters.h"

#include <algorithm>

namespace mulligan {

LayerOrder layer_order(const ModelConfig& model, LayerOrderKind kind) {
  std::vector<std::int64_t> order;
  if (kind == LayerOrderKind::looped && model.loop.extra_passes > 0) {
    for (std::int64_t layer = 0; layer < model.loop.first; ++layer) order.push_back(layer);
    for (std::int64_t pass = 0; pass <= model.loop.extra_passes; ++pass) {
      for (std::int64_t layer = model.loop.first; layer <= model.loop.last; ++layer) order.push_back(layer);
    }
    for (std::int64_t layer = model.loop.last + 1; layer < model.layers; ++layer) order.push_back(layer);
  } else {
    for (std::int64_t layer = 0; layer < model.layers; ++layer) order.push_back(layer);
  }
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  return {{order.begin(), middle}, {middle, order.end()}};
}

std::int64_t skip_rows(const ModelConfig& model) {
  const LayerOrder order = layer_order(model, LayerOrderKind::looped);
  return static_cast<std::int64_t>(std::min(order.encoder.size(), order.decoder.size()));
}

}  // namespace mulligan
