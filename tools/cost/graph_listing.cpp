#include "tools/cost/graph_listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tools/cost/cost_text.h"
#include "tools/cost/profile.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {
namespace {

std::string list_calls(const Graph& graph, const CallAccess& access) {
  std::map<std::uint32_t, std::size_t> numbers;  // of scratch values
  const auto name_of = [&](Value value) -> std::string {
    if (!value) return "-";
    const Value root = graph.root(value);
    std::string name = graph.info(root).name;
    if (graph.info(root).storage != Graph::Storage::external)
      name = fmt::format("%{}", numbers.try_emplace(root.id, numbers.size()).first->second);
    return value == root ? name : fmt::format("{}[{}]", name, graph.info(value).offset);
  };
  TextLines text;
  for (const Call& call : graph.calls()) {
    const std::vector<Access> accesses = access.of(call);
    std::vector<std::string> read, written;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      if (accesses[i].written) written.push_back(name_of(call.arguments[i]));
      if (accesses[i].read || !call.arguments[i]) read.push_back(name_of(call.arguments[i]));
    }
    for (const Attribute& attribute : call.attributes)
      read.push_back(fmt::format("{}={:g}", attribute.name, attribute.value));
    text.line("{} = {}({})", fmt::join(written, ", "), call.kernel, fmt::join(read, ", "));
  }
  return text.take();
}

}  // namespace

std::string list_micro_step(LoadedConfig& loaded, PluginHost& host, const std::string& name) {
  const StepRehearsal rehearsal(loaded, host, 1, 0);
  const std::size_t phase = chosen_phase(rehearsal.config(), name);
  const Graph& graph = rehearsal.micro_step(phase).graph();
  return fmt::format("# micro-step of phase '{}', {}: {} calls\n{}\n", rehearsal.config().phases[phase].name,
                     loaded.config.run.fused_kernels ? "after the passes" : "as the model is written",
                     graph.calls().size(), list_calls(graph, rehearsal.access()));
}

}  // namespace mulligan
