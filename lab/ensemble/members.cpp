#include "lab/ensemble/members.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "framework/core/error.h"
#include "framework/model/parameter_roles.h"
#include "framework/plugin/plugin_threads.h"
#include "framework/run/weights.h"

namespace mulligan::ensemble {
namespace {

// A weight as the plugin sees it: rows are output channels, those of a bank one matrix after another.
std::int64_t columns_of(const TensorType& type) {
  return type.dims[static_cast<std::size_t>(type.rank) - 1];
}

// The first element that is not finite; as many as there are where all are.
std::size_t first_odd(std::span<const float> values) {
  const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(odd - values.begin());
}

}  // namespace

bool changes(const ParameterSpec& spec, const ModelConfig& model) {
  return spec.matrix && spec.type.rank >= 2 && spec.name != embedding_parameter(model);
}

MemberBytes member_bytes(const Ensemble& plugin, const std::vector<ParameterLayout>& layouts,
                         const ModelConfig& model) {
  MemberBytes bytes;
  for (const ParameterLayout& layout : layouts) {
    const TensorType& type = layout.spec.type;
    if (!changes(layout.spec, model)) {
      bytes.kept_weights += type.elements();
      bytes.kept += static_cast<std::uint64_t>(type.elements()) * sizeof(float);
      continue;
    }
    const std::int64_t columns = columns_of(type);
    const double stored = plugin.stored_bytes(type.elements() / columns, columns);
    if (!(stored >= 0) || stored > 0x1p62) {
      throw run_error("{}: it says that '{}' takes {} bytes; fix the plugin.", plugin.plugin().description(),
                      layout.spec.name, stored);
    }
    bytes.changed_weights += type.elements();
    bytes.member += static_cast<std::uint64_t>(std::ceil(stored));
  }
  return bytes;
}

Members::Members(LoadedModel& model, const ModelConfig& config, const Ensemble& plugin, std::uint64_t seed,
                 int threads)
    : model_(model), plugin_(plugin), seed_(seed), threads_(threads) {
  for (const ParameterLayout& layout : model.layouts()) {
    if (!changes(layout.spec, config)) continue;
    weights_.push_back({&layout, model.store().download_as<float>(master_name(layout.spec.name))});
    const std::vector<float>& centre = weights_.back().centre;
    const std::size_t odd = first_odd(centre);
    if (odd == centre.size()) continue;
    throw run_error(
        "element {} of the weight '{}' is {}, so no members can be made; the training run has diverged.", odd,
        layout.spec.name, centre[odd]);
  }
}

void Members::make_centre() {
  model_.load([&](TensorStore& store, const std::vector<ParameterLayout>&) {
    for (const Weight& weight : weights_) upload_master(store, *weight.layout, weight.centre);
  });
}

void Members::make(std::int64_t member) {
  const PluginThreads threads(threads_);
  model_.load([&](TensorStore& store, const std::vector<ParameterLayout>&) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Weight& weight = weights_[i];
      const std::string& name = weight.layout->spec.name;
      const std::int64_t columns = columns_of(weight.layout->spec.type);
      made_.assign(weight.centre.size(), std::nanf(""));
      plugin_.make({name.c_str(), weight.centre.data(), std::ssize(weight.centre) / columns, columns,
                    static_cast<std::int64_t>(i), seed_, member, plugin_parallel_for},
                   made_.data());
      const std::size_t odd = first_odd(made_);
      if (odd < made_.size()) {
        throw run_error("{}: element {} of the weight '{}' of member {} is not finite, or was not written.",
                        plugin_.plugin().description(), odd, name, member);
      }
      upload_master(store, *weight.layout, made_);
    }
  });
}

}  // namespace mulligan::ensemble
