# What the bundle leaves to the machine it runs on. Sourced by the scripts of this folder.

# is_system_library NAME: the C library's own parts and the dynamic linker, which must be those of the running system, and the
# C++ run-time library. Debian's libstdc++ alone needs glibc 2.36; that of Ubuntu 22.04 (GCC 12) runs what g++ 12 compiles.
is_system_library() {
  [[ $1 =~ ^(ld-linux.*|linux-vdso|lib(c|m|mvec|dl|pthread|rt|util|resolv|anl|nsl|thread_db|BrokenLocale|stdc\+\+|gcc_s))\.so(\.[0-9]+)*$ ]]
}

# is_cuda_library NAME: NVIDIA's driver and toolkit, which the cuda plugin opens by name when a run asks for a GPU.
is_cuda_library() {
  [[ $1 =~ ^lib(cuda|cudart|cublas|cublasLt|cudnn.*|nvrtc.*|nvJitLink|nvidia.*|nccl|cupti|nvToolsExt)\.so ]]
}

is_elf() { [[ $(head -c 4 "$1" | tr -d '\0') == $'\x7fELF' ]]; }
