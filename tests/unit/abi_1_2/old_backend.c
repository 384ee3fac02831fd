/* A backend that computes nothing, knows one kernel, and takes a compiled one in its place as ABI 1.2 said it: by add_kernels
 * of a kernel without source whose entry is the file. kernel_at(0)->entry then tells the file. */
#include <mulligan/backend.h>
#include <stdlib.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_backend_table) == 208, "as released");

static char file[200];
static mlg_kernel known = {"old_kernel", "old_backend", "in x, out y", NULL,
                           NULL,         NULL,          "its source",  "its name"};

static mlg_error info(void* instance, mlg_device_info* out) {
  (void)instance;
  const mlg_device_info told = {"a backend of ABI 1.2", 0, 0, 0};
  *out = told;
  return NULL;
}
static mlg_error allocate(void* instance, size_t bytes, void** address) {
  (void)instance;
  *address = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address ? NULL : "out of memory";
}
static void free_memory(void* instance, void* address) {
  (void)instance;
  free(address);
}
static mlg_error upload(void* instance, void* device, const void* host, size_t bytes) {
  (void)instance;
  memcpy(device, host, bytes);
  return NULL;
}
static mlg_error zero(void* instance, void* device, size_t bytes) {
  (void)instance;
  memset(device, 0, bytes);
  return NULL;
}
static mlg_error add_kernels(void* instance, const mlg_kernel* kernels, uint32_t count, int32_t replace) {
  (void)instance;
  if (!replace || count != 1 || kernels->source || !kernels->entry) return "only a compiled kernel is taken";
  if (strcmp(kernels->name, known.name) || strcmp(kernels->backend, known.backend)) return "not my kernel";
  if (strstr(kernels->entry, "bad")) return "the file is no good";
  strncpy(file, kernels->entry, sizeof file - 1);
  known.source = NULL;
  known.entry = file;
  return NULL;
}
static const mlg_kernel* kernel_at(void* instance, uint32_t index) {
  (void)instance;
  return index == 0 ? &known : NULL;
}
static mlg_error prepare(void* instance, const mlg_call* call, void** prepared, size_t* workspace_bytes) {
  (void)instance;
  (void)call;
  *prepared = NULL;
  *workspace_bytes = 0;
  return NULL;
}
static mlg_error bind(void* instance, void* prepared, void* const* addresses, void* workspace) {
  (void)instance;
  (void)prepared;
  (void)addresses;
  (void)workspace;
  return NULL;
}
static mlg_error run(void* instance, void* const* prepared, uint32_t count) {
  (void)instance;
  (void)prepared;
  (void)count;
  return NULL;
}
static void release(void* instance, void* prepared) {
  (void)instance;
  (void)prepared;
}
static mlg_error synchronize(void* instance) {
  (void)instance;
  return NULL;
}

static const mlg_backend_table table = {HEADER(mlg_backend_table, MLG_BACKEND, "old_backend", NULL, 0),
                                        create,
                                        destroy,
                                        info,
                                        allocate,
                                        free_memory,
                                        upload,
                                        upload,
                                        upload,
                                        zero,
                                        add_kernels,
                                        kernel_at,
                                        prepare,
                                        bind,
                                        run,
                                        release,
                                        synchronize,
                                        NULL};
EXPORTED const char mlg_abi_1_backend_old_backend = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
