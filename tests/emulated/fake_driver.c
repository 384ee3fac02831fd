/* A driver without a GPU, for tests: cuDNN makes plans for a described device with it. It takes code and
 * hands out kernels that cannot run; everything else fails with "no device". Its SONAME is the real driver's,
 * so that what asks for libcuda.so.1 in a process that has loaded it gets this one. */
#include <stddef.h>

enum { kSuccess = 0, kNoDevice = 100, kVersion = 13000 };

static int library, kernel;

int cuDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kSuccess ? "no error" : "no CUDA-capable device is detected";
  return kSuccess;
}

int cuGetErrorName(int error, const char** text) {
  *text = error == kSuccess ? "CUDA_SUCCESS" : "CUDA_ERROR_NO_DEVICE";
  return kSuccess;
}

int cuLibraryLoadData(void** loaded, const void* code, void* a, void* b, unsigned c, void* d, void* e,
                      unsigned f) {
  (void)code, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  *loaded = &library;
  return kSuccess;
}

int cuLibraryUnload(void* unloaded) {
  (void)unloaded;
  return kSuccess;
}

int cuLibraryGetKernel(void** found, void* from, const char* name) {
  (void)from, (void)name;
  *found = &kernel;
  return kSuccess;
}

int cuLibraryGetGlobal(unsigned long long* address, size_t* bytes, void* from, const char* name) {
  (void)from, (void)name;
  if (address) *address = 4096;
  if (bytes) *bytes = 8;
  return kSuccess;
}

int cuKernelGetFunction(void** function, void* of) {
  *function = of;
  return kSuccess;
}

int cuKernelSetAttribute(int attribute, int value, void* of, int device) {
  (void)attribute, (void)value, (void)of, (void)device;
  return kSuccess;
}

int cuKernelGetAttribute(int* value, int attribute, void* of, int device) {
  (void)attribute, (void)of, (void)device;
  *value = 0;
  return kSuccess;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return kSuccess;
}

int cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)attribute, (void)function;
  *value = 0;
  return kSuccess;
}

#define NO_DEVICE(name) \
  int name(void) {      \
    return kNoDevice;   \
  }
NO_DEVICE(cuInit)
NO_DEVICE(cuCtxGetCurrent)
NO_DEVICE(cuCtxGetLimit)
NO_DEVICE(cuCtxPopCurrent)
NO_DEVICE(cuCtxPushCurrent)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDeviceGetCount)
NO_DEVICE(cuLaunchCooperativeKernel)
NO_DEVICE(cuLaunchKernel)
NO_DEVICE(cuLaunchKernelEx)
NO_DEVICE(cuLibraryLoadFromFile)
NO_DEVICE(cuLinkAddData)
NO_DEVICE(cuLinkComplete)
NO_DEVICE(cuLinkCreate)
NO_DEVICE(cuLinkDestroy)
NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
NO_DEVICE(cuStreamGetCtx)
