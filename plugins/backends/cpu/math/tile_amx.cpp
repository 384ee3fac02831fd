#include "plugins/backends/cpu/math/tile_amx.h"

#if defined(MULLIGAN_AMX)
#include <sys/syscall.h>
#include <unistd.h>

namespace mulligan::cpu {

bool amx_usable() {
  // Linux hands out the unit's 8 KiB of state only to processes that ask (Documentation/x86/xstate.rst).
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool usable = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return usable;
}

}  // namespace mulligan::cpu
#endif
