/* Configuration keys of a plugin. The plugin declares a key once; the host parses it, checks its range and fills in its
 * default. */
#ifndef MULLIGAN_CONFIG_H
#define MULLIGAN_CONFIG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mlg_key_type {
  MLG_KEY_BOOL = 1,
  MLG_KEY_INT = 2,
  MLG_KEY_FLOAT = 3,
  MLG_KEY_STRING = 4,
  MLG_KEY_FLOAT_LIST = 5
} mlg_key_type;

/* One key of the plugin's TOML table. Strings have static storage. */
typedef struct mlg_key {
  const char* name; /* bare TOML key */
  int32_t type;     /* mlg_key_type */
  /* as TOML text ("0.9", "true", "\"polar\"", "[1.0, 2.0]"); NULL: the user must set it */
  const char* default_value;
  /* inclusive range of INT, FLOAT and list members; -HUGE_VAL, HUGE_VAL: unbounded */
  double minimum, maximum;
  const char* choices; /* STRING: allowed words separated by '|'; NULL: any */
  const char* help;    /* one sentence with the unit */
} mlg_key;

/* The resolved values of a plugin's keys, complete and checked; valid only during create(). The `name` of a getter must be
 * a declared key of that type. Anything else is a programming error and aborts with a message.
 */
typedef struct mlg_config {
  const void* self;
  int32_t (*get_bool)(const void* self, const char* name);
  int64_t (*get_int)(const void* self, const char* name);
  double (*get_float)(const void* self, const char* name);
  const char* (*get_string)(const void* self, const char* name);
  /* Returns the list's length; `values` points to it. */
  uint32_t (*get_float_list)(const void* self, const char* name, const double** values);
} mlg_config;

#ifdef __cplusplus
}
#endif
#endif
