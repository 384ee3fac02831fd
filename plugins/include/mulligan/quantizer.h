/* Quantiser plugins: a weight matrix to small integers with one scale per row, or two; corrections of low
 * rank. */
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
  const float*
      input_rms; /* [columns]: root mean square of each input column over all rows read; NULL like hessian */
  /* Columns with a finer scale of their own, in groups of protected_size from each start, ascending and
   * apart. 0 groups unless the table has protect(). Their codes lie in [-p, p] with p =
   * 2^(protected_bits-1) - 1. */
  const int64_t* protected_starts;
  int64_t protected_count, protected_size;
  int32_t protected_bits;
} mlg_quantize_request;

typedef struct mlg_quantize_result {
  int8_t* codes; /* to be written: [rows, columns] in the order of the weight's columns */
  /* To be written: [rows], values that fp16 holds exactly. The weight is then read back as codes * scales in
   * f32. */
  float* scales;
  /* To be written: sum over rows of d H d^T with d = weight - codes * scale and H the hessian, the identity
   * without. */
  double squared_error;
  /* NULL without protected groups. To be written like scales: what the codes of protected columns are
   * multiplied with. */
  float* protected_scales;
} mlg_quantize_result;

/* One matrix of the model, for the stages over all of them. */
typedef struct mlg_quantize_tensor {
  const char* name;
  int64_t rows, columns;
  int32_t bits;
  double clip_sigmas;
  const float* weight;    /* [rows, columns]; NULL in extra_bytes() */
  const float* input_rms; /* as in the request; NULL in extra_bytes() */
  const float* read_back; /* [rows, columns]: what codes and scales give back; correct() only */
} mlg_quantize_tensor;

/* A correction that is added to what a matrix gives back: left [rows, rank] times right
 * [rank, columns], codes in [-128, 127]. In row-major order each `group` codes have one scale, the last
 * group what is left; scales are values that fp16 holds. */
typedef struct mlg_low_rank {
  int64_t rank;
  const int8_t *left, *right;
  int64_t left_group, right_group;
  const float *left_scales, *right_scales;
} mlg_low_rank;

/* Where the stages say what they chose; `tensor` is an index of their list. The host copies. */
typedef struct mlg_quantize_choices {
  void* context;
  void (*protect)(void* context, int64_t tensor, int64_t start); /* of protect() only */
  void (*correct)(void* context, int64_t tensor,
                  const mlg_low_rank* correction); /* of correct(); once a tensor */
  int64_t protected_size; /* to be written by protect(): columns of a group, and bits of their codes */
  int32_t protected_bits;
} mlg_quantize_choices;

typedef struct mlg_quantizer_table {
  mlg_plugin_header header;
  /* 1: quantize() wants a hessian, so the host collects them in a forward pass over training data. */
  int32_t needs_hessian;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Not on the step path: may allocate. The result depends on the request and the configuration only, not on
   * how parallel_for cuts. One call at a time. */
  mlg_error (*quantize)(void* instance, const mlg_quantize_request* request, mlg_quantize_result* result);
  /* All may be NULL. Over all matrices of format int of a model, in the model's order:
   * protect() before the first quantize(), correct() after the last; neither where extra_bytes() says 0. */
  mlg_error (*protect)(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                       mlg_quantize_choices* choices);
  mlg_error (*correct)(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                       mlg_quantize_choices* choices);
  /* Bytes, at most, by which both let the artifact grow, foretold from shapes alone. */
  mlg_error (*extra_bytes)(void* instance, const mlg_quantize_tensor* tensors, int64_t count, double* bytes);
} mlg_quantizer_table;

#ifdef __cplusplus
}
#endif
#endif
