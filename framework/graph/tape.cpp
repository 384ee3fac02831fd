#include "framework/graph/tape.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace mulligan {

void Tape::watch(Value leaf, Value gradient) {
  if (graph_.type(leaf).elements() != graph_.type(gradient).elements()) {
    throw std::logic_error("Tape::watch: a gradient has as many elements as its leaf");
  }
  leaf_gradients_[leaf.id] = gradient;
}

void Tape::keep_gradient_in(Value value, DType dtype) {
  gradient_dtypes_[value.id] = dtype;
}

bool Tape::needs_gradient(Value value) const {
  if (!value) return false;
  return depends_.contains(value.id) || leaf_gradients_.contains(graph_.root(value).id);
}

void Tape::record(std::vector<Value> outputs, std::vector<Value> inputs,
                  std::function<void(Backward&)> rule) {
  if (!differentiate_ || std::ranges::none_of(inputs, [this](Value v) { return needs_gradient(v); })) return;
  for (const Value output : outputs) {
    if (output) depends_[output.id] = true;
  }
  entries_.push_back({std::move(outputs), std::move(inputs), std::move(rule), graph_.calls().size()});
}

void Tape::call(const std::string& op, const std::vector<Value>& inputs, const std::vector<Value>& outputs,
                const std::vector<Attribute>& attributes, const std::vector<Gradient>& gradients) {
  std::vector<Value> arguments = inputs, differentiated;
  arguments.insert(arguments.end(), outputs.begin(), outputs.end());
  graph_.call(op + "_fwd", std::move(arguments), attributes);
  for (const Gradient& gradient : gradients) differentiated.push_back(gradient.input);
  record(outputs, std::move(differentiated), [=](Backward& b) {
    std::vector<Value> given = inputs;
    for (const Value output : outputs) given.push_back(b.of(output));
    std::vector<Attribute> with_flags = attributes;
    for (const Gradient& gradient : gradients) {
      const Backward::Target target = b.into(gradient.input);
      given.push_back(target.value);
      if (gradient.name)
        with_flags.push_back({std::string("accumulate_") + gradient.name, target.accumulate});
    }
    b.graph().call(op + "_bwd", std::move(given), std::move(with_flags));
  });
}

Value Tape::call(const std::string& op, const std::vector<Value>& inputs, std::string_view hint,
                 const std::vector<Attribute>& attributes, const std::vector<Gradient>& gradients) {
  const Value output = graph_.scratch(graph_.type(inputs.front()), hint);
  call(op, inputs, {output}, attributes, gradients);
  return output;
}

std::optional<Value> Tape::input_of(std::size_t call) const {
  const auto entry = std::ranges::find(entries_, call + 1, &Entry::calls);
  return entry == entries_.end() ? std::nullopt : std::optional(entry->inputs.front());
}

void Tape::rewrite(const std::map<std::size_t, std::function<void()>>& replaced) {
  if (replaced.empty()) return;
  const std::vector<Call> calls(graph_.calls().begin(), graph_.calls().end());
  std::vector<Entry> entries = std::exchange(entries_, {});
  auto entry = entries.begin();
  const auto take_over = [&](std::size_t at, bool keep) {
    for (; entry != entries.end() && entry->calls <= at; ++entry) {
      if (!keep) continue;
      entry->calls = graph_.calls().size();
      entries_.push_back(std::move(*entry));
    }
  };
  graph_.set_calls({});
  take_over(0, true);
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const auto found = replaced.find(at);
    if (found == replaced.end()) {
      graph_.call(calls[at].kernel, calls[at].arguments, calls[at].attributes);
    } else if (found->second) {
      found->second();
    }
    take_over(at + 1, found == replaced.end());
  }
}

void Tape::backward(Value output, Value seed) {
  gradients_[output.id] = seed;
  Backward context(*this);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const bool reached =
        std::ranges::any_of(entry->outputs, [this](Value v) { return v && gradients_.contains(v.id); });
    if (reached) entry->rule(context);
  }
}

Value Backward::of(Value output) const {
  const auto found = tape_.gradients_.find(output.id);
  return found == tape_.gradients_.end() ? Value{} : found->second;
}

bool Backward::needed(Value input) const {
  return tape_.needs_gradient(input);
}

Graph& Backward::graph() const {
  return tape_.graph_;
}

Backward::Target Backward::into(Value input) {
  if (!needed(input)) return {};
  Graph& graph = tape_.graph_;
  const Graph::ValueInfo& info = graph.info(input);
  if (const auto leaf = tape_.leaf_gradients_.find(graph.root(input).id);
      leaf != tape_.leaf_gradients_.end()) {
    const std::int64_t offset = info.storage == Graph::Storage::view ? info.offset : 0;
    return {graph.view(leaf->second, offset, info.type.as(graph.type(leaf->second).dtype)), 1.0};
  }
  const auto [known, first] = tape_.gradients_.try_emplace(input.id);
  if (first) {
    const auto dtype = tape_.gradient_dtypes_.find(input.id);
    const bool own = dtype == tape_.gradient_dtypes_.end();
    known->second = graph.scratch(own ? info.type : info.type.as(dtype->second), "gradient of " + info.name);
  } else if (tape_.shared_.contains(known->second.id)) {
    const Value own = graph.scratch(graph.type(known->second), "gradient of " + info.name);
    graph.call("axpby", {known->second, Value{}, own},
               {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", 0.0}});
    known->second = own;
  }
  return {known->second, first ? 0.0 : 1.0};
}

bool Backward::takes_storage(Value input) const {
  return needed(input) && !tape_.leaf_gradients_.contains(tape_.graph_.root(input).id) &&
         !tape_.gradients_.contains(input.id) && !tape_.gradient_dtypes_.contains(input.id);
}

Backward::Target Backward::into_storage_of(Value input, Value storage) {
  if (!takes_storage(input)) return into(input);
  tape_.gradients_[input.id] = storage;
  return {storage, 0.0};
}

bool Backward::share(Value input, Value storage) {
  if (!takes_storage(input)) return false;
  tape_.gradients_[input.id] = storage;
  tape_.shared_.insert(storage.id);
  return true;
}

}  // namespace mulligan
