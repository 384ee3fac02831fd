/* What the plugins share. */
#include <mulligan/abi.h>
#include <stddef.h>
#include <string.h>

_Static_assert(MLG_ABI_MINOR == 3, "these are the headers of ABI 1.3");

#define EXPORTED __attribute__((visibility("default")))
#define HEADER(type, kind, name, kernels, count)                                                            \
  {                                                                                                         \
    MLG_ABI_MAGIC, MLG_ABI_MAJOR, MLG_ABI_MINOR, sizeof(type), kind, name, "1.3", "of ABI 1.3", 0, 0, NULL, \
        count, kernels                                                                                      \
  }

static mlg_error create(const mlg_host* host, const struct mlg_config* config, void** instance) {
  (void)host;
  (void)config;
  *instance = NULL;
  return NULL;
}
static void destroy(void* instance) {
  (void)instance;
}
