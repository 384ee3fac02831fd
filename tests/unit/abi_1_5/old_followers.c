/* A score transform that raises what followed the present token: the last follower by `boost` nats, the one
 * before it by half of that. What it learns it knows in all places of its stream. */
#include <mulligan/transform.h>
#include <stdlib.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_bias) == 16, "as released");
_Static_assert(sizeof(mlg_transform_text) == 24, "as released");
_Static_assert(sizeof(mlg_transform_table) == 136, "as released");

static const struct mlg_key keys[] = {
    {"boost", MLG_KEY_FLOAT, "1.5", 0, 50, NULL, "nats on the logit of the last follower"}};

typedef struct stream_state {
  int64_t left;           /* tokens that may still come */
  int32_t* present;       /* [places]; -1: none yet */
  int32_t (*followed)[2]; /* [vocabulary]: the last follower and the one before it; -1: none */
} stream_state;

static mlg_error create(const mlg_host* host, const mlg_config* config, void** instance) {
  (void)host;
  double* boost = malloc(sizeof *boost);
  if (!boost) return "out of memory";
  *boost = config->get_float(config->self, "boost");
  *instance = boost;
  return NULL;
}
static void destroy(void* instance) {
  free(instance);
}
static void close_stream(void* instance, void* stream) {
  (void)instance;
  stream_state* state = stream;
  free(state->present);
  free(state->followed);
  free(state);
}
static mlg_error open_stream(void* instance, const mlg_transform_text* text, void** stream) {
  stream_state* state = malloc(sizeof *state);
  if (!state) return "out of memory";
  state->left = text->tokens;
  state->present = malloc((size_t)text->places * sizeof *state->present);
  state->followed = malloc((size_t)text->vocabulary * sizeof *state->followed);
  if (!state->present || !state->followed) {
    close_stream(instance, state);
    return "out of memory";
  }
  for (int64_t i = 0; i < text->places; ++i) state->present[i] = -1;
  for (int64_t i = 0; i < text->vocabulary; ++i) state->followed[i][0] = state->followed[i][1] = -1;
  *stream = state;
  return NULL;
}
static mlg_error begin(void* instance, void* stream, int64_t place, int32_t token) {
  (void)instance;
  ((stream_state*)stream)->present[place] = token;
  return NULL;
}
static mlg_error propose(void* instance, void* stream, int64_t place, mlg_bias out[MLG_TRANSFORM_BIASES],
                         uint32_t* count) {
  const stream_state* state = stream;
  const int32_t present = state->present[place];
  *count = 0;
  for (int i = 0; present >= 0 && i < 2 && state->followed[present][i] >= 0; ++i) {
    out[i].token = state->followed[present][i];
    out[i].bias = *(const double*)instance / (i + 1);
    *count = (uint32_t)(i + 1);
  }
  return NULL;
}
static mlg_error observe(void* instance, void* stream, int64_t place, int32_t token) {
  (void)instance;
  stream_state* state = stream;
  if (state->left == 0) return "more tokens came than the stream was opened for";
  --state->left;
  const int32_t present = state->present[place];
  state->present[place] = token;
  if (present < 0 || state->followed[present][0] == token) return NULL;
  state->followed[present][1] = state->followed[present][0];
  state->followed[present][0] = token;
  return NULL;
}

static const mlg_transform_table table = {HEADER(mlg_transform_table, MLG_TRANSFORM, "old_followers", keys),
                                          2,
                                          create,
                                          destroy,
                                          open_stream,
                                          close_stream,
                                          begin,
                                          propose,
                                          observe};
EXPORTED const char mlg_abi_1_transform_old_followers = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
