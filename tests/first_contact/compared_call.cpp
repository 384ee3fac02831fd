#include "tests/first_contact/compared_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "tests/first_contact/sampled.h"

namespace mulligan::first_contact {
namespace {

// "q", "k", ... of "in q, in k, out? y; scale".
std::vector<std::string> argument_names(const Backend& backend, const std::string& kernel) {
  for (std::uint32_t i = 0; const mlg_kernel* known = backend.kernel_at(i); ++i) {
    if (kernel != known->name) continue;
    std::string signature = known->signature;
    signature.resize(std::min(signature.find(';'), signature.size()));
    std::vector<std::string> names;
    for (std::size_t at = 0; at < signature.size();) {
      const std::size_t comma = std::min(signature.find(',', at), signature.size());
      const std::string one = signature.substr(at, comma - at);
      names.push_back(one.substr(one.rfind(' ') + 1));
      at = comma + 1;
    }
    return names;
  }
  return {};
}

}  // namespace

ComparedCall::ComparedCall(Backend& device, Backend& reference, Program& program, std::size_t index,
                           const ProgramMemory& memory)
    : device_(device),
      reference_(reference),
      program_(program),
      index_(index),
      call_(program.graph().calls()[index]),
      memory_(memory),
      names_(argument_names(device, call_.kernel)) {
  place_arguments(memory);
}

void ComparedCall::place_arguments(const ProgramMemory& memory) {
  const Graph& graph = program_.graph();
  const std::vector<Access> access = CallAccess(device_).of(call_);
  for (std::size_t i = 0; i < call_.arguments.size(); ++i) {
    const Value value = call_.arguments[i];
    Argument& argument = arguments_.emplace_back();
    if (!value) {
      argument.type.dtype = MLG_ABSENT;
      continue;
    }
    const Graph::ValueInfo& info = graph.info(value);
    argument.type = info.type;
    argument.access = access[i];
    argument.offset = info.storage == Graph::Storage::view ? info.offset * dtype_size(info.type.dtype) : 0;
    narrow_ |= info.type.dtype == MLG_BF16 || info.type.dtype == MLG_F16;
    const Value root = graph.root(value);
    auto region = std::ranges::find(regions_, root.id, &Region::root);
    if (region == regions_.end()) {
      const Graph::ValueInfo& owner = graph.info(root);
      auto* start = owner.storage == Graph::Storage::external
                        ? static_cast<std::byte*>(memory.store->address(owner.name))
                        : static_cast<std::byte*>(memory.arena) + program_.plan().offset[root.id];
      regions_.push_back({root.id, argument.offset, argument.offset, 0, start, false, false, {}, {}, {}});
      region = std::prev(regions_.end());
    }
    region->begin = std::min(region->begin, argument.offset);
    region->end = std::max(region->end, argument.offset + info.type.bytes());
    region->read |= access[i].read;
    region->covered += info.type.bytes();
    region->written |= access[i].written;
    argument.region = static_cast<std::size_t>(region - regions_.begin());
  }
  for (Argument& argument : arguments_) {
    if (argument.type.dtype != MLG_ABSENT) argument.offset -= regions_[argument.region].begin;
  }
  for (Region& region : regions_) region.device += region.begin;
}

HostTensor ComparedCall::seen(std::size_t argument, std::vector<std::byte> Region::*when) const {
  const Argument& one = arguments_[argument];
  if (one.type.dtype == MLG_ABSENT || (regions_[one.region].*when).empty()) return {};
  return {one.type, (regions_[one.region].*when).data() + one.offset};
}

void ComparedCall::poison() {
  const auto fill = [&](void* address, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += memory_.nan_bytes->bytes()) {
      device_.copy(static_cast<std::byte*>(address) + done, memory_.nan_bytes->address(),
                   std::min(memory_.nan_bytes->bytes(), bytes - done));
    }
  };
  fill(memory_.workspace, memory_.workspace_bytes);
  for (const Argument& argument : arguments_) {
    if (argument.type.dtype == MLG_ABSENT || regions_[argument.region].read) continue;
    fill(regions_[argument.region].device + argument.offset, static_cast<std::size_t>(argument.type.bytes()));
  }
}

// Empty, or the device's sentence.
std::string ComparedCall::run_on_device(CallReport& report) {
  const auto start = std::chrono::steady_clock::now();
  try {
    program_.run_range(index_, index_ + 1);
    device_.synchronize();
    report.seconds = seconds_since(start);
    for (Region& region : regions_) {
      if (!region.written) continue;
      region.after.resize(static_cast<std::size_t>(region.end - region.begin));
      device_.download(region.after.data(), region.device, region.after.size());
    }
    return {};
  } catch (const Error& error) {
    try {
      device_.synchronize();
      std::byte probe{};
      device_.download(&probe, memory_.nan_bytes->address(), 1);
    } catch (const Error&) {
      report.stopped = true;
    }
    return error.what();
  }
}

// Empty, or why the reference has none.
std::string ComparedCall::run_on_reference() {
  std::vector<mlg_tensor> types;
  std::vector<void*> addresses;
  for (Region& region : regions_) {
    region.reference = reference_.allocate(static_cast<std::size_t>(region.end - region.begin));
    if (!region.before.empty())
      reference_.upload(region.reference.address(), region.before.data(), region.before.size());
  }
  for (const Argument& argument : arguments_) {
    const bool absent = argument.type.dtype == MLG_ABSENT;
    types.push_back(absent ? mlg_tensor{nullptr, MLG_ABSENT, 0, {1, 1, 1, 1}} : argument.type.to_c());
    addresses.push_back(absent ? nullptr
                               : static_cast<std::byte*>(regions_[argument.region].reference.address()) +
                                     argument.offset);
  }
  std::vector<mlg_attribute> attributes;
  for (const Attribute& one : call_.attributes) attributes.push_back({one.name.c_str(), one.value});
  const mlg_call request{call_.kernel.c_str(), types.data(), static_cast<std::uint32_t>(types.size()),
                         attributes.data(), static_cast<std::uint32_t>(attributes.size())};
  try {
    PreparedCall prepared = reference_.prepare(request);
    const DeviceBuffer workspace = reference_.allocate(prepared.workspace_bytes());
    prepared.bind(addresses.data(), workspace.address());
    void* handle = prepared.handle();
    reference_.run(std::span(&handle, 1));
    reference_.synchronize();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void ComparedCall::put_reference_results() {
  for (Region& region : regions_) {
    if (!region.written) continue;
    region.after.resize(static_cast<std::size_t>(region.end - region.begin));
    reference_.download(region.after.data(), region.reference.address(), region.after.size());
    device_.upload(region.device, region.after.data(), region.after.size());
  }
}

void ComparedCall::judge_argument(CallReport& report, const std::string& reference, const std::string& name,
                                  const Agreement& agreement, std::size_t argument) const {
  judge(report, reference, name, agreement, limits_of(narrow_, arguments_[argument].type));
}

// Whether the call is one of those that are judged by elements in fp64.
bool ComparedCall::judge_by_samples(CallReport& report) const {
  const std::string& kernel = call_.kernel;
  const auto text = [](const Agreement& agreement) {
    return fmt::format("fp64, {} elements", agreement.elements());
  };
  if (kernel == "matmul" || kernel == "matmul_add") {
    const bool adds = kernel == "matmul_add";
    const std::size_t c = adds ? 3 : 2;
    const Agreement agreement = sampled_matmul(
        {before(0), before(1), before(2), after(c), call_.attribute("transpose_a") != 0,
         call_.attribute("transpose_b") != 0, call_.attribute("alpha"), call_.attribute("beta")});
    judge_argument(report, text(agreement), "c", agreement, c);
    return true;
  }
  if (kernel == "attention_fwd") {
    const ForwardAgreement agreement = sampled_forward(
        {before(0), before(1), before(2), before(3), after(4), after(5), call_.attribute("softmax_scale")});
    judge_argument(report, text(agreement.o), "o", agreement.o, 4);
    judge_argument(report, text(agreement.o), "lse", agreement.lse, 5);
    return true;
  }
  if (kernel == "attention_bwd") {
    const auto added = [&](std::size_t argument, const char* name) {
      return call_.attribute(name) != 0 ? before(argument) : HostTensor{};
    };
    const BackwardAgreement agreement = sampled_backward(
        {before(0), before(1), before(2), before(3), before(4), before(5), call_.attribute("softmax_scale")},
        {before(6), after(7), after(8), after(9), added(7, "accumulate_dq"), added(8, "accumulate_dk"),
         added(9, "accumulate_dv")});
    const std::string reference = text(agreement.dq);
    judge_argument(report, reference, "dq", agreement.dq, 7);
    judge_argument(report, reference, "dk", agreement.dk, 8);
    judge_argument(report, reference, "dv", agreement.dv, 9);
    return true;
  }
  return false;
}

void ComparedCall::judge_by_reference(CallReport& report) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    if (argument.type.dtype == MLG_ABSENT || !argument.access.written) continue;
    const auto* expected =
        static_cast<const std::byte*>(regions_[argument.region].reference.address()) + argument.offset;
    const std::string name = i < names_.size() ? names_[i] : fmt::format("argument {}", i + 1);
    judge_argument(report, "cpu backend, every element", name,
                   compare_all(after(i), {argument.type, expected}), i);
  }
}

CallReport ComparedCall::run(Treatment treatment) {
  CallReport report;
  if (treatment != Treatment::run_only) {
    for (Region& region : regions_) {
      if (!region.read && region.covered >= region.end - region.begin) continue;
      region.before.resize(static_cast<std::size_t>(region.end - region.begin));
      device_.download(region.before.data(), region.device, region.before.size());
    }
  }
  if (treatment == Treatment::take_over) {
    report.verdict = CallVerdict::taken_over;
    report.sentence = run_on_reference();
    if (report.sentence.empty()) put_reference_results();
    return report;
  }
  poison();
  report.sentence = run_on_device(report);
  if (!report.sentence.empty()) {
    report.verdict = CallVerdict::failed;
  } else if (treatment == Treatment::run_only) {
    report.sentence = "no time was left for a reference";
    return report;
  } else if (!judge_by_samples(report)) {
    const std::string missing = run_on_reference();
    if (missing.empty()) {
      judge_by_reference(report);
    } else {
      report.sentence = "no reference: " + missing;
    }
  }
  const bool wrong = report.verdict == CallVerdict::failed || report.verdict == CallVerdict::differs;
  if (!wrong || report.stopped) return report;
  const bool computed =
      std::ranges::all_of(regions_, [](const Region& r) { return r.reference.address() != nullptr; });
  if (computed || (treatment == Treatment::compare && run_on_reference().empty())) put_reference_results();
  return report;
}

}  // namespace mulligan::first_contact
