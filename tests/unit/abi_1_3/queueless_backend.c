/* A backend that computes nothing, knows one kernel, and takes a compiled one in its place (kernel_at(0)->entry then tells the
 * file). Of queues ABI 1.3 knew nothing. */
#include <mulligan/backend.h>
#include <stdlib.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_backend_table) == 216, "as released");

static char file[200];
static mlg_kernel known = {"old_kernel", "queueless_backend", "in x, out y", NULL,
                           NULL,         NULL,          "its source",  "its name"};

static mlg_error info(void* instance, mlg_device_info* out) {
  (void)instance;
  const mlg_device_info told = {"a backend of ABI 1.3", 0, 0, 0};
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
  (void)kernels;
  (void)count;
  (void)replace;
  return NULL;
}
static mlg_error replace_kernel(void* instance, const char* name, const char* path) {
  (void)instance;
  if (strcmp(name, known.name)) return "not my kernel";
  strncpy(file, path, sizeof file - 1);
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

static const mlg_backend_table table = {HEADER(mlg_backend_table, MLG_BACKEND, "queueless_backend", NULL, 0),
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
                                        NULL,
                                        replace_kernel};
EXPORTED const char mlg_abi_1_backend_queueless_backend = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
