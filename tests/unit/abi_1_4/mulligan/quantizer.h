/* Quantiser plugins: a weight matrix to small integers with one scale per row. */
#ifndef MULLIGAN_QUANTIZER_H
#define MULLIGAN_QUANTIZER_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One matrix W of a linear layer y = x W^T. All memory is host memory, row-major, owned by the host and valid
 * during the call. */
typedef struct mlg_quantize_request {
  const char* name;    /* "blocks.3.attn.c_q.weight" */
  const float* weight; /* [rows, columns], finite */
  /* [columns, columns]: second moment of the layer's input, sum of x^T x over calibration batches divided by
   * their number. Symmetric. NULL when needs_hessian is 0, or when no linear layer reads the matrix: then
   * columns count alike. */
  const float* hessian;
  int64_t rows, columns; /* at least 1 */
  int32_t bits;          /* 2 to 8: codes lie in [-qmax, qmax] with qmax = 2^(bits-1) - 1 */
  double clip_sigmas;    /* k > 0: the range of a row is k standard deviations to each side */
  /* Runs body over [0, count) in pieces of at least `grain`, which may run at once; returns when all are
   * done. To be called from the thread that called quantize(). `body` must not let an exception out. */
  void (*parallel_for)(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
} mlg_quantize_request;

typedef struct mlg_quantize_result {
  int8_t* codes; /* to be written: [rows, columns] in the order of the weight's columns */
  /* To be written: [rows], values that fp16 holds exactly. The weight is then read back as codes * scales in
   * f32. */
  float* scales;
  /* To be written: sum over rows of d H d^T with d = weight - codes * scale and H the hessian, the identity
   * without. */
  double squared_error;
} mlg_quantize_result;

typedef struct mlg_quantizer_table {
  mlg_plugin_header header;
  /* 1: quantize() wants a hessian, so the host collects them in a forward pass over training data. */
  int32_t needs_hessian;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Not on the step path: may allocate. The result depends on the request and the configuration only, not on
   * how parallel_for cuts. One call at a time. */
  mlg_error (*quantize)(void* instance, const mlg_quantize_request* request, mlg_quantize_result* result);
} mlg_quantizer_table;

#ifdef __cplusplus
}
#endif
#endif
