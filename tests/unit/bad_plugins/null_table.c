#include <mulligan/abi.h>
#include <stddef.h>
__attribute__((visibility("default"))) const char mlg_abi_1_schedule_null_table = 1;
__attribute__((visibility("default"))) const mlg_plugin_header* mlg_plugin(void) {
  return NULL;
}
