// The subcommands (command_list.inc). Each function declares one subcommand's options on `app` and the work of the subcommand.
// Errors are thrown as mulligan::Error.
#pragma once

#include <optional>
#include <string>

#include "framework/core/safetensors.h"

namespace CLI {
class App;
}

namespace mulligan {

struct RunOptions;

// Throws config_error that lists the subcommands of `parent` if none of them was named.
void require_command(const CLI::App& parent);

#define MULLIGAN_COMMAND(name, group, part) void add_##name##_command(CLI::App& app);
#include "launch/command_list.inc"
#undef MULLIGAN_COMMAND

// For `checkpoint export`: the weights of a run directory, an artifact or a weights file, for `form` "hf" or "gguf". "weights":
// a weights file of this program, as from `checkpoint import`.
void export_model(const std::string& path, const std::string& form, const std::string& output,
                  std::optional<DType> dtype, const RunOptions& run);
// Of `plugins`.
void add_kernels_command(CLI::App& plugins);

}  // namespace mulligan
