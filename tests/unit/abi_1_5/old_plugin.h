/* What the plugins share. */
#include <mulligan/abi.h>
#include <stddef.h>

_Static_assert(MLG_ABI_MINOR == 5, "these are the headers of ABI 1.5");

#define EXPORTED __attribute__((visibility("default")))
#define HEADER(type, kind, name, keys)                                                             \
  {                                                                                                \
    MLG_ABI_MAGIC, MLG_ABI_MAJOR, MLG_ABI_MINOR, sizeof(type), kind, name, "1.5", "of ABI 1.5", 0, \
        sizeof(keys) / sizeof((keys)[0]), keys, 0, NULL                                            \
  }
