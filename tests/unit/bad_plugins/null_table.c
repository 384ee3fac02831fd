#include <mulligan/abi.h>
#include <stddef.h>
__attribute__((visibility("default"))) const mlg_plugin_header* mlg_plugin(void) {
  return NULL;
}
