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

/* The resolved value of a key, in the member of its type. */
typedef struct mlg_setting {
  int64_t integer;    /* BOOL (0 or 1), INT */
  double number;      /* FLOAT */
  const char* text;   /* STRING */
  const double* list; /* FLOAT_LIST: `count` numbers */
  uint32_t count;
} mlg_setting;

/* The resolved values of a plugin's keys, complete and checked; valid only during create(). `name` must be a declared key of
 * the mlg_key_type `type`. Anything else is a programming error and aborts with a message. */
typedef struct mlg_config {
  const void* self;
  mlg_setting (*get)(const void* self, const char* name, int32_t type);
} mlg_config;

#ifdef __cplusplus
}
#endif
#endif
