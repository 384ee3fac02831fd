# Every third-party library, in one place. All are packages of Debian 12 and Ubuntu 24.04.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)                 # Boost.DLL (header only)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)  # sha256
find_package(PkgConfig REQUIRED)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl CONFIG REQUIRED)                # oneDNN, used by the cpu backend plugin only
if(MULLIGAN_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
