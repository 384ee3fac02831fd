#include "launch/build_plugins.h"

#include "framework/plugin/build_plugins.h"
#include "mulligan_build_plugins.h"

namespace mulligan {

void name_build_plugins() {
  set_build_plugins(MULLIGAN_BUILD_PLUGINS);
}

}  // namespace mulligan
