# The target `bundle`: one archive that runs on other machines (docs/bundle.md). It builds program and plugins once more
# below <build folder>/bundle, for CPUs in general and without the names of this machine's folders.
if(MULLIGAN_PORTABLE OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  return()
endif()
set(MULLIGAN_BUNDLE_CPU_ARCH "x86-64-v3" CACHE STRING "-march of the bundle's CPU kernels: x86-64-v2, -v3 or -v4")

set(folder "${PROJECT_BINARY_DIR}/bundle")
set(name "mulligan-${PROJECT_VERSION}-linux-x86_64")
set(scripts "${CMAKE_CURRENT_LIST_DIR}/bundle")
set(settings
  -G "${CMAKE_GENERATOR}" -DCMAKE_BUILD_TYPE=Release -DMULLIGAN_PORTABLE=ON -DMULLIGAN_BUILD_TESTS=OFF
  "-DMULLIGAN_CPU_ARCH=${MULLIGAN_BUNDLE_CPU_ARCH}" "-DMULLIGAN_CUDA=${MULLIGAN_CUDA}"
  "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
  "-DCMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH}")
foreach(headers MULLIGAN_CUDA_INCLUDE MULLIGAN_CUDNN_INCLUDE)
  if(${headers})
    list(APPEND settings "-D${headers}=${${headers}}")
  endif()
endforeach()

# The Debian package is made of the same build.
add_custom_target(deb
  COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}" -B "${folder}/build" ${settings}
  COMMAND "${CMAKE_COMMAND}" --build "${folder}/build"
  COMMAND "${CMAKE_CPACK_COMMAND}" -G DEB --config "${folder}/build/CPackConfig.cmake" -B "${PROJECT_BINARY_DIR}"
  COMMENT "The Debian package"
  USES_TERMINAL VERBATIM)

add_custom_target(bundle
  COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}" -B "${folder}/build" ${settings}
  COMMAND "${CMAKE_COMMAND}" --build "${folder}/build"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${folder}/${name}"
  COMMAND "${CMAKE_COMMAND}" --install "${folder}/build" --component runtime --strip --prefix "${folder}/${name}"
  COMMAND "${CMAKE_COMMAND}" --install "${folder}/build" --component sdk --prefix "${folder}/${name}"
  COMMAND "${scripts}/collect" "${folder}/${name}"
  COMMAND "${scripts}/kernels" "${folder}/${name}"
  COMMAND "${scripts}/inspect" "${folder}/${name}" --cpu "${MULLIGAN_BUNDLE_CPU_ARCH}" --glibc 2.35
          --forbid "${PROJECT_SOURCE_DIR}" --forbid "${PROJECT_BINARY_DIR}"
  COMMAND "${scripts}/archive" "${folder}/${name}" "${PROJECT_BINARY_DIR}/${name}.tar.xz"
  COMMENT "The portable bundle ${name}.tar.xz"
  USES_TERMINAL VERBATIM)
