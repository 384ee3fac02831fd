/* A quantiser that chooses over the whole model. Scales are powers of two. Of each matrix whose inputs are
 * known the columns from that with the largest input on get 7 bits, and the last matrix gets a correction of
 * rank 1: the power of two below what its codes lose on average. */
#include <mulligan/quantizer.h>
#include <stdlib.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_quantize_request) == 104, "as released");
_Static_assert(sizeof(mlg_quantize_result) == 32, "as released");
_Static_assert(sizeof(mlg_quantize_tensor) == 64, "as released");
_Static_assert(sizeof(mlg_low_rank) == 56, "as released");
_Static_assert(sizeof(mlg_quantize_choices) == 40, "as released");
_Static_assert(sizeof(mlg_quantizer_table) == 128, "as released");

enum { protected_bits = 7 };
static const struct mlg_key keys[] = {
    {"protected_size", MLG_KEY_INT, "2", 1, 64, NULL, "columns of a matrix whose codes get 7 bits"}};

static mlg_error create(const mlg_host* host, const mlg_config* config, void** instance) {
  (void)host;
  int64_t* size = malloc(sizeof *size);
  if (!size) return "out of memory";
  *size = config->get_int(config->self, "protected_size");
  *instance = size;
  return NULL;
}
static void destroy(void* instance) {
  free(instance);
}

static int is_protected(const mlg_quantize_request* request, int64_t column) {
  for (int64_t i = 0; i < request->protected_count; ++i) {
    const int64_t start = request->protected_starts[i];
    if (column >= start && column < start + request->protected_size) return 1;
  }
  return 0;
}
/* The smallest power of two by which no weight of the row's columns of that kind is cut. */
static float row_scale(const mlg_quantize_request* request, const float* row, int fine, int most) {
  float largest = 0, scale = 1;
  for (int64_t j = 0; j < request->columns; ++j) {
    const float size = row[j] < 0 ? -row[j] : row[j];
    if (is_protected(request, j) == fine && size > largest) largest = size;
  }
  while (scale < 32768 && scale * (float)most < largest) scale *= 2;
  while (scale > 1.0f / 16384 && scale / 2 * (float)most >= largest) scale /= 2;
  return scale;
}

typedef struct work {
  const mlg_quantize_request* request;
  const mlg_quantize_result* result;
  double* row_error; /* [rows] */
  double* rest;      /* [rows, columns]: weight - codes * scale */
} work;

static void quantize_rows(void* context, int64_t begin, int64_t end) {
  const work* w = context;
  const mlg_quantize_request* request = w->request;
  const int64_t columns = request->columns;
  const int most = (1 << (request->bits - 1)) - 1;
  const int fine_most = request->protected_count ? (1 << (request->protected_bits - 1)) - 1 : 0;
  for (int64_t i = begin; i < end; ++i) {
    const float* row = request->weight + i * columns;
    double* rest = w->rest + i * columns;
    const float scale = row_scale(request, row, 0, most);
    const float fine_scale = fine_most ? row_scale(request, row, 1, fine_most) : 1;
    for (int64_t j = 0; j < columns; ++j) {
      const float step = is_protected(request, j) ? fine_scale : scale;
      const int code = (int)(row[j] / step + (row[j] < 0 ? -0.5f : 0.5f));
      w->result->codes[i * columns + j] = (int8_t)code;
      rest[j] = row[j] - code * (double)step;
    }
    w->result->scales[i] = scale;
    if (fine_most) w->result->protected_scales[i] = fine_scale;
    w->row_error[i] = 0;
    for (int64_t a = 0; a < columns; ++a) {
      for (int64_t b = 0; b < columns; ++b) {
        const double moment = request->hessian ? request->hessian[a * columns + b] : a == b;
        w->row_error[i] += rest[a] * moment * rest[b];
      }
    }
  }
}
static mlg_error quantize(void* instance, const mlg_quantize_request* request, mlg_quantize_result* result) {
  (void)instance;
  const size_t rows = (size_t)request->rows;
  double* memory = malloc(rows * ((size_t)request->columns + 1) * sizeof *memory);
  if (!memory) return "out of memory";
  work w = {request, result, memory, memory + rows};
  request->parallel_for(request->rows, 1, quantize_rows, &w);
  result->squared_error = 0;
  for (size_t i = 0; i < rows; ++i) result->squared_error += w.row_error[i];
  free(memory);
  return NULL;
}

static mlg_error protect(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                         mlg_quantize_choices* choices) {
  choices->protected_size = *(const int64_t*)instance;
  choices->protected_bits = protected_bits;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t last = tensors[i].columns - choices->protected_size;
    if (!tensors[i].input_rms || last < 0) continue;
    int64_t largest = 0;
    for (int64_t j = 1; j < tensors[i].columns; ++j) {
      if (tensors[i].input_rms[j] > tensors[i].input_rms[largest]) largest = j;
    }
    choices->protect(choices->context, i, largest < last ? largest : last);
  }
  return NULL;
}
static mlg_error correct(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                         mlg_quantize_choices* choices) {
  (void)instance;
  const mlg_quantize_tensor* tensor = &tensors[count - 1];
  const int64_t elements = tensor->rows * tensor->columns;
  double mean = 0;
  for (int64_t i = 0; i < elements; ++i)
    mean += (tensor->weight[i] - tensor->read_back[i]) / (double)elements;
  if (mean == 0) return NULL;
  /* The power of two below it is the scale of the one factor, the sign is in the other. */
  const double size = mean < 0 ? -mean : mean;
  const float one = 1;
  float scale = 1;
  while (scale > 1.0f / 16384 && scale > size) scale /= 2;
  int8_t* left = malloc((size_t)(tensor->rows + tensor->columns));
  if (!left) return "out of memory";
  int8_t* right = left + tensor->rows;
  for (int64_t i = 0; i < tensor->rows; ++i) left[i] = mean < 0 ? -1 : 1;
  for (int64_t j = 0; j < tensor->columns; ++j) right[j] = 1;
  const mlg_low_rank correction = {1, left, right, tensor->rows, tensor->columns, &one, &scale};
  choices->correct(choices->context, count - 1, &correction);
  free(left);
  return NULL;
}
static mlg_error extra_bytes(void* instance, const mlg_quantize_tensor* tensors, int64_t count,
                             double* bytes) {
  const double size = (double)*(const int64_t*)instance;
  *bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    *bytes += (double)tensors[i].rows * (size * (protected_bits - tensors[i].bits) / 8 + 2);
    if (i == count - 1) *bytes += (double)(tensors[i].rows + tensors[i].columns) + 4;
  }
  return NULL;
}

static const mlg_quantizer_table table = {HEADER(mlg_quantizer_table, MLG_QUANTIZER, "old_chooser", keys),
                                          1,
                                          create,
                                          destroy,
                                          quantize,
                                          protect,
                                          correct,
                                          extra_bytes};
EXPORTED const char mlg_abi_1_quantizer_old_chooser = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
