/* Quantiser plugins turn a weight matrix into small integers with one or two scales per row. They may add corrections of low
 * rank. */
#ifndef MULLIGAN_QUANTIZER_H
#define MULLIGAN_QUANTIZER_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One matrix W of a linear layer y = x W^T. All memory is row-major host memory that the host owns, valid during the
 * call. */
typedef struct mlg_quantize_request {
  const char* name;    /* "blocks.3.attn.c_q.weight" */
  const float* weight; /* [rows, columns], finite */
  /* [columns, columns], symmetric: second moment of the layer's input, the sum of x^T x over calibration batches divided by
   * their number. NULL if needs_hessian is 0, or if no linear layer reads the matrix; then all columns have equal weight. */
  const float* hessian;
  int64_t rows, columns; /* at least 1 */
  int32_t bits;          /* 2 to 8: codes lie in [-qmax, qmax] with qmax = 2^(bits-1) - 1 */
  double clip_sigmas;    /* k > 0: the range of a row is k standard deviations to each side */
  /* Runs body over [0, count) in pieces of at least `grain`, which may run at once, and returns when all are done. Only the
   * thread that called quantize() may call it. `body` must not throw. */
  void (*parallel_for)(int64_t count, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
  const float*
      input_rms; /* [columns]: root mean square of each input column over all rows read; NULL like hessian */
  /* Columns with a finer scale of their own: groups of protected_size from each start, ascending and disjoint. There are
   * none unless the table has protect(). Their codes lie in [-p, p] with p = 2^(protected_bits-1) - 1. */
  const int64_t* protected_starts;
  int64_t protected_count, protected_size;
  int32_t protected_bits;
} mlg_quantize_request;

typedef struct mlg_quantize_result {
  int8_t* codes; /* to be written: [rows, columns] in the order of the weight's columns */
  /* To be written: [rows], values that fp16 holds exactly. The weight is read back as codes * scales in f32. */
  float* scales;
  /* To be written: sum over rows of d H d^T with d = weight - codes * scale and H the hessian, or the identity without
   * one. */
  double squared_error;
  /* NULL without protected groups. To be written like scales: the factors of the codes of protected columns. */
  float* protected_scales;
} mlg_quantize_result;

/* One matrix of the model, for the stages over all matrices. */
typedef struct mlg_quantize_tensor {
  const char* name;
  int64_t rows, columns;
  int32_t bits;
  double clip_sigmas;
  const float* weight;    /* [rows, columns]; NULL in extra_bytes() */
  const float* input_rms; /* as in the request; NULL in extra_bytes() */
  const float* read_back; /* [rows, columns]: the weights that codes and scales give; correct() only */
} mlg_quantize_tensor;

/* A correction that is added to the weights read back: left [rows, rank] times right [rank, columns], with codes in
 * [-128, 127]. In row-major order every `group` codes have one scale; the last group may be smaller. Scales are values that
 * fp16 holds. */
typedef struct mlg_low_rank {
  int64_t rank;
  const int8_t *left, *right;
  int64_t left_group, right_group;
  const float *left_scales, *right_scales;
} mlg_low_rank;

/* Takes the choices of the stages; `tensor` is an index of their list. The host copies what it is given. */
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
  /* 1: quantize() needs a hessian. The host collects hessians in a forward pass over training data. */
  int32_t needs_hessian;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* Not on the step path, so it may allocate. The result depends on the request and the configuration only, not on how
   * parallel_for cuts. One call at a time. */
  mlg_error (*quantize)(void* instance, const mlg_quantize_request* request, mlg_quantize_result* result);
  /* All three may be NULL. They see all matrices of format int of a model, in the model's order. The host calls protect()
   * before the first quantize() and correct() after the last, and neither if extra_bytes() gives 0. */
  mlg_error (*protect)(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                       mlg_quantize_choices* choices);
  mlg_error (*correct)(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                       mlg_quantize_choices* choices);
  /* An upper bound, from shapes alone, of the bytes that both add to the artifact. */
  mlg_error (*extra_bytes)(void* instance, const mlg_quantize_tensor* tensors, int64_t count, double* bytes);
} mlg_quantizer_table;

#ifdef __cplusplus
}
#endif
#endif
