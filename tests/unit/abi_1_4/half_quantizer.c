/* A quantiser whose scales are all 1/2: codes are twice the weights, cut to their range. Of choices over the whole model
 * ABI 1.4 knew nothing. */
#include <mulligan/quantizer.h>
#include <stddef.h>

_Static_assert(MLG_ABI_MINOR == 4, "these are the headers of ABI 1.4");
_Static_assert(sizeof(mlg_quantizer_table) == 104, "as released");

static mlg_error create(const mlg_host* host, const mlg_config* config, void** instance) {
  (void)host;
  (void)config;
  *instance = NULL;
  return NULL;
}
static void destroy(void* instance) {
  (void)instance;
}
static mlg_error quantize(void* instance, const mlg_quantize_request* request, mlg_quantize_result* result) {
  (void)instance;
  const int qmax = (1 << (request->bits - 1)) - 1;
  result->squared_error = 0;
  for (int64_t i = 0; i < request->rows * request->columns; ++i) {
    int code = (int)(request->weight[i] * 2);
    if (code > qmax) code = qmax;
    if (code < -qmax) code = -qmax;
    const double rest = request->weight[i] - code / 2.0;
    result->codes[i] = (int8_t)code;
    result->squared_error += rest * rest;
  }
  for (int64_t row = 0; row < request->rows; ++row) result->scales[row] = 0.5f;
  return NULL;
}

static const mlg_quantizer_table table = {
    {MLG_ABI_MAGIC, MLG_ABI_MAJOR, MLG_ABI_MINOR, sizeof(mlg_quantizer_table), MLG_QUANTIZER, "half_quantizer", "1.4",
     "of ABI 1.4", 0, 0, NULL, 0, NULL},
    0,
    create,
    destroy,
    quantize};

__attribute__((visibility("default"))) const char mlg_abi_1_quantizer_half_quantizer = 0;
__attribute__((visibility("default"))) const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
