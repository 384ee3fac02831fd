/* Tensors in the interface of plugins: contiguous, row-major, at most four dimensions. */
#ifndef MULLIGAN_TENSOR_H
#define MULLIGAN_TENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLG_MAX_RANK 4

typedef enum mlg_dtype {
  MLG_ABSENT = -1, /* an optional argument that was not given */
  MLG_F32 = 0,
  MLG_BF16 = 1,
  MLG_F16 = 2,
  MLG_F64 = 3,
  MLG_I32 = 4,
  MLG_I64 = 5,
  MLG_U16 = 6,
  MLG_U8 = 7,
  MLG_I8 = 8
} mlg_dtype;

typedef struct mlg_tensor {
  void* data;    /* device address; NULL while only the shape is known */
  int32_t dtype; /* mlg_dtype */
  int32_t rank;
  int64_t shape[MLG_MAX_RANK]; /* entries beyond rank are 1 */
} mlg_tensor;

/* A named constant of a kernel call. Integers up to 2^53 and booleans (0, 1) are exact. */
typedef struct mlg_attribute {
  const char* name;
  double value;
} mlg_attribute;

#ifdef __cplusplus
}
#endif
#endif
