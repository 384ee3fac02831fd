#include "framework/plugin/plugin_table_check.h"

#include <fmt/format.h>
#include <mulligan/backend.h>
#include <mulligan/communicator.h>
#include <mulligan/ensemble.h>
#include <mulligan/loss.h>
#include <mulligan/optimizer.h>
#include <mulligan/quantizer.h>
#include <mulligan/schedule.h>
#include <mulligan/transform.h>
#include <mulligan/ttt.h>
#include <mulligan/wrapper.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "framework/plugin/plugin.h"

namespace mulligan {
namespace {

// A member that every plugin of the kind must fill.
struct Required {
  const char* name;
  std::size_t offset;
};
#define REQUIRED(Table, member) \
  { #member, offsetof(Table, member) }
constexpr Required kBackend[] = {
    REQUIRED(mlg_backend_table, create),    REQUIRED(mlg_backend_table, destroy),
    REQUIRED(mlg_backend_table, info),      REQUIRED(mlg_backend_table, allocate),
    REQUIRED(mlg_backend_table, free),      REQUIRED(mlg_backend_table, upload),
    REQUIRED(mlg_backend_table, download),  REQUIRED(mlg_backend_table, copy),
    REQUIRED(mlg_backend_table, zero),      REQUIRED(mlg_backend_table, add_kernels),
    REQUIRED(mlg_backend_table, kernel_at), REQUIRED(mlg_backend_table, prepare),
    REQUIRED(mlg_backend_table, bind),      REQUIRED(mlg_backend_table, run),
    REQUIRED(mlg_backend_table, release),   REQUIRED(mlg_backend_table, synchronize)};
constexpr Required kLoss[] = {REQUIRED(mlg_loss_table, create), REQUIRED(mlg_loss_table, destroy),
                              REQUIRED(mlg_loss_table, record_forward),
                              REQUIRED(mlg_loss_table, record_backward)};
constexpr Required kOptimizer[] = {
    REQUIRED(mlg_optimizer_table, create), REQUIRED(mlg_optimizer_table, destroy),
    REQUIRED(mlg_optimizer_table, scalar_count), REQUIRED(mlg_optimizer_table, record),
    REQUIRED(mlg_optimizer_table, scalars)};
constexpr Required kSchedule[] = {REQUIRED(mlg_schedule_table, create), REQUIRED(mlg_schedule_table, destroy),
                                  REQUIRED(mlg_schedule_table, rate)};
constexpr Required kQuantizer[] = {REQUIRED(mlg_quantizer_table, create),
                                   REQUIRED(mlg_quantizer_table, destroy),
                                   REQUIRED(mlg_quantizer_table, quantize)};
// Adapters or base updates or both: who asks for one of them checks that it is there.
constexpr Required kTtt[] = {REQUIRED(mlg_ttt_table, create), REQUIRED(mlg_ttt_table, destroy)};
constexpr Required kCommunicator[] = {
    REQUIRED(mlg_communicator_table, create), REQUIRED(mlg_communicator_table, destroy),
    REQUIRED(mlg_communicator_table, open),   REQUIRED(mlg_communicator_table, prepare),
    REQUIRED(mlg_communicator_table, submit), REQUIRED(mlg_communicator_table, join),
    REQUIRED(mlg_communicator_table, poll),   REQUIRED(mlg_communicator_table, abort),
    REQUIRED(mlg_communicator_table, release)};
constexpr Required kTransform[] = {
    REQUIRED(mlg_transform_table, create), REQUIRED(mlg_transform_table, destroy),
    REQUIRED(mlg_transform_table, open),   REQUIRED(mlg_transform_table, close),
    REQUIRED(mlg_transform_table, begin),  REQUIRED(mlg_transform_table, propose),
    REQUIRED(mlg_transform_table, observe)};
constexpr Required kEnsemble[] = {REQUIRED(mlg_ensemble_table, create), REQUIRED(mlg_ensemble_table, destroy),
                                  REQUIRED(mlg_ensemble_table, make),
                                  REQUIRED(mlg_ensemble_table, stored_bytes)};
constexpr Required kWrapper[] = {REQUIRED(mlg_wrapper_table, create), REQUIRED(mlg_wrapper_table, destroy),
                                 REQUIRED(mlg_wrapper_table, scalar_count),
                                 REQUIRED(mlg_wrapper_table, record), REQUIRED(mlg_wrapper_table, scalars)};
#undef REQUIRED

// The bytes of a whole table, and the members of it that must be filled.
struct TableShape {
  std::size_t bytes;
  std::span<const Required> required;
};

TableShape shape_of(PluginKind kind) {
  switch (kind) {
    case PluginKind::backend:
      return {sizeof(mlg_backend_table), kBackend};
    case PluginKind::loss:
      return {sizeof(mlg_loss_table), kLoss};
    case PluginKind::optimizer:
      return {sizeof(mlg_optimizer_table), kOptimizer};
    case PluginKind::schedule:
      return {sizeof(mlg_schedule_table), kSchedule};
    case PluginKind::quantizer:
      return {sizeof(mlg_quantizer_table), kQuantizer};
    case PluginKind::ttt:
      return {sizeof(mlg_ttt_table), kTtt};
    case PluginKind::communicator:
      return {sizeof(mlg_communicator_table), kCommunicator};
    case PluginKind::transform:
      return {sizeof(mlg_transform_table), kTransform};
    case PluginKind::ensemble:
      return {sizeof(mlg_ensemble_table), kEnsemble};
    case PluginKind::wrapper:
      return {sizeof(mlg_wrapper_table), kWrapper};
  }
  return {sizeof(mlg_plugin_header), {}};
}

using AnyFunction = void (*)();

}  // namespace

std::string table_problem(const mlg_plugin_header* table) {
  if (!table) return "returned no table from mlg_plugin";
  if (table->magic != MLG_ABI_MAGIC) {
    return fmt::format(
        "begins its table with the magic number {:#010x} instead of {:#010x}; fill the table with "
        "the SDK's macros",
        table->magic, MLG_ABI_MAGIC);
  }
  if (table->abi_major != MLG_ABI_MAJOR || table->abi_minor > MLG_ABI_MINOR) {
    return fmt::format(
        "was built for plugin ABI {}.{}, but this program has ABI {}.{}; rebuild it with this program's SDK",
        table->abi_major, table->abi_minor, MLG_ABI_MAJOR, MLG_ABI_MINOR);
  }
  if (kind_word(static_cast<PluginKind>(table->kind)) == "unknown") {
    return fmt::format("says kind {} in its table, which is none; export it with the macro of its kind",
                       table->kind);
  }
  const TableShape shape = shape_of(static_cast<PluginKind>(table->kind));
  if (table->struct_size < shape.bytes) {
    return fmt::format(
        "has a table of {} bytes, shorter than the {} of ABI {}.{}; set struct_size to the size of the whole "
        "table",
        table->struct_size, shape.bytes, MLG_ABI_MAJOR, MLG_ABI_MINOR);
  }
  if (!table->name || !table->version || !table->summary) {
    return "leaves name, version or summary of its table null; give all three";
  }
  if ((table->key_count > 0 && !table->keys) || (table->kernel_count > 0 && !table->kernels)) {
    return "counts keys or kernels in its table but gives no list of them";
  }
  for (const Required& member : shape.required) {
    AnyFunction function = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(table) + member.offset, sizeof function);
    if (!function) return fmt::format("leaves the required function '{}' of its table null", member.name);
  }
  return {};
}

}  // namespace mulligan
