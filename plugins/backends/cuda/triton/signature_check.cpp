#include "plugins/backends/cuda/triton/signature_check.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace mulligan::cuda::triton {
namespace {

constexpr const char* kElements[] = {"fp32", "bf16", "fp16", "fp64", "i32",
                                     "i64",  "u16",  "u8",   "i8"};  // by mlg_dtype

// What PTX may call a parameter of a Triton type; empty: the cuda backend does not pass it.
std::vector<std::string> ptx_types(const std::string& type) {
  if (type.starts_with("*")) return {"u64", "b64"};
  if (type == "fp32") return {"f32", "b32"};
  if (type == "i32") return {"u32", "s32", "b32"};
  if (type == "i64") return {"u64", "s64", "b64"};
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

Binding bind(const DescribedParameter& parameter, const Description& description,
             const backends::Signature& signature) {
  const auto fail = [&](const std::string& what) -> std::runtime_error {
    return std::runtime_error(description.file + ": the parameter " + parameter.name + " " + what);
  };
  Binding binding{parameter, 0, {}};
  const auto argument = std::ranges::find(signature.arguments, parameter.name, &backends::Parameter::name);
  if (!parameter.extent.empty()) {
    binding.number.emplace(parameter.extent, signature, description.file);
    if (parameter.type != "i32" && parameter.type != "i64") {
      throw fail("is an extent and must be i32 or i64, but it is " + parameter.type);
    }
  } else if (argument != signature.arguments.end()) {
    binding.index = static_cast<std::uint32_t>(argument - signature.arguments.begin());
    const bool known = std::any_of(std::begin(kElements), std::end(kElements), [&](const char* element) {
      return parameter.type == std::string("*") + element;
    });
    if (!known) {
      throw fail("stands for a tensor and must be a pointer such as *fp32, but it is " + parameter.type);
    }
    // Calls are planned anew for addresses that are less aligned than this.
    if (16 % parameter.divisible_by != 0)
      throw fail("can be promised an address that is a multiple of 16 at most");
  } else if (std::ranges::find(signature.attributes, parameter.name) != signature.attributes.end()) {
    binding.number.emplace(parameter.name, signature, description.file);
    if (parameter.type.starts_with("*") || ptx_types(parameter.type).empty()) {
      throw fail("stands for an attribute and must be fp32, i32 or i64, but it is " + parameter.type);
    }
  } else {
    std::vector<std::string> names;
    for (const auto& known : signature.arguments) names.push_back(known.name);
    throw fail("is neither an argument (" + joined(names) + ") nor an attribute (" +
               joined(signature.attributes) + ") of the kernel " + description.kernel +
               ", and it has no extent");
  }
  return binding;
}

}  // namespace

std::string pointer_type(std::int32_t dtype) {
  return std::string("*") + kElements[dtype];
}

std::vector<Binding> bind_parameters(const Description& description, const backends::Signature& signature) {
  std::vector<Binding> bindings;
  std::set<std::string> taken;
  for (const DescribedParameter& parameter : description.parameters) {
    if (!taken.insert(parameter.name).second) {
      throw std::runtime_error(description.file + ": the parameter " + parameter.name + " is listed twice");
    }
    bindings.push_back(bind(parameter, description, signature));
  }
  for (const backends::Parameter& argument : signature.arguments) {
    if (argument.optional || taken.count(argument.name)) continue;
    throw std::runtime_error(description.file + ": the kernel " + description.kernel +
                             " passes the argument " + argument.name + ", but no parameter takes it");
  }
  for (const std::string& attribute : signature.attributes) {
    const bool fixed = std::any_of(description.when.begin(), description.when.end(),
                                   [&](const auto& entry) { return entry.first == attribute; });
    if (fixed || taken.count(attribute)) continue;
    throw std::runtime_error(description.file + ": the kernel " + description.kernel + " has the attribute " +
                             attribute +
                             ", but no parameter takes it, and \"when\" does not say for which "
                             "value the code was compiled");
  }
  return bindings;
}

void check_entry(const PtxEntry& entry, const Description& description, const std::string& file) {
  const std::size_t described = description.parameters.size(), scratch = description.scratch.size();
  const std::string where = file + ": the entry point " + description.entry + " ";
  if (entry.parameters.size() != described + scratch) {
    throw std::runtime_error(where + "has " + std::to_string(entry.parameters.size()) +
                             " parameters, but its description lists " + std::to_string(described) + " and " +
                             std::to_string(scratch) + " scratch pointers; compile both files together");
  }
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    const bool hidden = i >= described;
    const std::string name =
        hidden ? description.scratch[i - described].name : description.parameters[i].name;
    const std::string type = hidden ? "*i8" : description.parameters[i].type;
    const std::vector<std::string> allowed = ptx_types(type);
    if (std::find(allowed.begin(), allowed.end(), entry.parameters[i]) != allowed.end()) continue;
    throw std::runtime_error(where + "takes its parameter " + std::to_string(i + 1) + ", " + name + ", as ." +
                             entry.parameters[i] + ", but its description says " + type + ", which is ." +
                             allowed.front());
  }
  if (entry.threads != 0 && entry.threads != description.threads) {
    throw std::runtime_error(where + "runs in blocks of " + std::to_string(entry.threads) +
                             " threads, but num_warps of its description makes " +
                             std::to_string(description.threads));
  }
}

}  // namespace mulligan::cuda::triton
