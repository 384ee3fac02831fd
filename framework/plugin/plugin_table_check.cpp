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
#include <sstream>
#include <string>

#include "framework/plugin/plugin.h"

namespace mulligan {
namespace {

// The functions that every plugin of a kind must fill, by name. They follow one another in its table, from `create` on.
struct TableShape {
  std::size_t bytes, first;
  std::string required;
};

template <typename Table>
TableShape shape(const char* required) {
  return {sizeof(Table), offsetof(Table, create), required};
}

TableShape shape_of(PluginKind kind) {
  switch (kind) {
    case PluginKind::backend:
      return shape<mlg_backend_table>(
          "create destroy info allocate free upload download copy zero add_kernels kernel_at prepare bind run release "
          "synchronize");
    case PluginKind::loss:
      return shape<mlg_loss_table>("create destroy record_forward record_backward");
    case PluginKind::optimizer:
      return shape<mlg_optimizer_table>("create destroy scalar_count record scalars");
    case PluginKind::schedule:
      return shape<mlg_schedule_table>("create destroy rate");
    case PluginKind::quantizer:
      return shape<mlg_quantizer_table>("create destroy quantize");
    case PluginKind::
        ttt:  // adapters or base updates or both: who asks for one of them checks that it is there
      return shape<mlg_ttt_table>("create destroy");
    case PluginKind::communicator:
      return shape<mlg_communicator_table>("create destroy open prepare submit join poll abort release");
    case PluginKind::transform:
      return shape<mlg_transform_table>("create destroy open close begin propose observe");
    case PluginKind::ensemble:
      return shape<mlg_ensemble_table>("create destroy make stored_bytes");
    case PluginKind::wrapper:
      return shape<mlg_wrapper_table>("create destroy scalar_count record scalars");
  }
  return {sizeof(mlg_plugin_header), 0, {}};
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
  const char* member = reinterpret_cast<const char*>(table) + shape.first;
  std::istringstream names(shape.required);
  for (std::string name; names >> name; member += sizeof(AnyFunction)) {
    AnyFunction function = nullptr;
    std::memcpy(&function, member, sizeof function);
    if (!function) return fmt::format("leaves the required function '{}' of its table null", name);
  }
  return {};
}

}  // namespace mulligan
