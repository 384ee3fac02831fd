# Compiler settings and helper functions of the project's CMakeLists.txt files. How plugins are built
# is the SDK's: include/MulliganPlugin.cmake.
option(MULLIGAN_BUILD_TESTS "Build the test programs" ON)
include(CMakeDependentOption)
option(MULLIGAN_TOOLS "Build tools/: prepare, doctor, report, cost" ON)
cmake_dependent_option(MULLIGAN_STUDIES "Build of tools/ also what is about many runs: sweep, record, stats" ON MULLIGAN_TOOLS OFF)
option(MULLIGAN_LAB "Build lab/: attention, calibration, ensembles, probes, task vectors, energy; needs tools and studies" ON)
option(MULLIGAN_CUDA_BACKEND "Build the cuda backend (its emulated device, where there are no CUDA headers); tests need it" ON)
if(MULLIGAN_LAB AND NOT MULLIGAN_STUDIES)
  message(FATAL_ERROR "MULLIGAN_LAB stands on the tools and studies; set MULLIGAN_TOOLS=ON and MULLIGAN_STUDIES=ON, or MULLIGAN_LAB=OFF too.")
endif()
if(MULLIGAN_BUILD_TESTS AND NOT MULLIGAN_CUDA_BACKEND)
  message(FATAL_ERROR "The tests need the cuda backend; set MULLIGAN_CUDA_BACKEND=ON, or MULLIGAN_BUILD_TESTS=OFF too.")
endif()
# Libraries that are not built then, and whose tests are not either. Runs of the tests need prepared data.
set(MULLIGAN_TOOLS_LIBRARIES prepare stats report_page doctor sweep cost record tiny_run)
set(MULLIGAN_LAB_LIBRARIES energy attention task_vectors calibration probe ensemble)
list(TRANSFORM MULLIGAN_TOOLS_LIBRARIES PREPEND mulligan_)
list(TRANSFORM MULLIGAN_LAB_LIBRARIES PREPEND mulligan_)
set(MULLIGAN_LEFT_OUT "")
if(NOT MULLIGAN_TOOLS)
  list(APPEND MULLIGAN_LEFT_OUT ${MULLIGAN_TOOLS_LIBRARIES})
endif()
if(NOT MULLIGAN_LAB)
  list(APPEND MULLIGAN_LEFT_OUT ${MULLIGAN_LAB_LIBRARIES})
endif()
set(MULLIGAN_CPU_ARCH "native" CACHE STRING
    "-march of the CPU kernels: native (this machine) or, for a portable bundle, x86-64-v3")
set(MULLIGAN_SANITIZE "" CACHE STRING "Comma-separated sanitizers, for example address,undefined")
option(MULLIGAN_PORTABLE "Leave this machine's folders out of the binaries (the portable bundle's build)" OFF)
option(MULLIGAN_FUZZ "Build the libFuzzer programs of tests/fuzz (clang)" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # kernels of the cpu backend: -O3 (mulligan_plugin)
set(MULLIGAN_TEST_FLAGS $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)  # or ccache does not know what a precompiled header holds
  # The compiler collects its garbage less often: a tenth less time, for a third more memory (1.0 GB in place of 0.7).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-expand=100> $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>)
  # With -O1 g++ 12 takes long strings for short ones.
  list(APPEND MULLIGAN_TEST_FLAGS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(MULLIGAN_PLUGIN_DIRECTORY "${CMAKE_BINARY_DIR}/lib/mulligan/plugins")
find_program(CCACHE ccache)
if(CCACHE)
  # Clones share what the cache holds: paths below the source folder are stored relative to it. CCACHE_DEPEND compares whole files:
  # by preprocessed text, headers that differ in a comment alone get a precompiled header that `#pragma once` does not recognise.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE}")
endif()

add_library(mulligan_options INTERFACE)
target_compile_options(mulligan_options INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overlapping copies inside std::string that do not exist (GCC bug 105651).
  target_compile_options(mulligan_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# Addresses that the dynamic linker fills in are read-only afterwards, and no stack is executable.
target_link_options(mulligan_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
target_include_directories(mulligan_options INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}")
set(MULLIGAN_PLUGIN_DEPENDS mulligan_options)
if(MULLIGAN_PORTABLE)
  target_compile_options(mulligan_options INTERFACE
    "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build" "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
endif()
if(MULLIGAN_SANITIZE)
  target_compile_options(mulligan_options INTERFACE
    -fsanitize=${MULLIGAN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(mulligan_options INTERFACE -fsanitize=${MULLIGAN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers g++ 12 takes members of std::regex for uninitialised, which they are not.
    target_compile_options(mulligan_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(MULLIGAN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MULLIGAN_FUZZ needs clang, which brings libFuzzer; use the preset fuzz.")
  endif()
  target_compile_options(mulligan_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(MULLIGAN_COMMON_HEADERS <fmt/format.h> <algorithm> <array> <cmath> <filesystem> <fstream> <functional> <map> <memory> <optional>
  <span> <sstream> <string> <variant> <vector>)

# mulligan_unity(TARGET): compiles up to MULLIGAN_JOINED_FILES files of TARGET as one, which reads the headers that they share
# once. Names in anonymous namespaces must therefore differ within a target.
set(MULLIGAN_JOINED_FILES "32" CACHE STRING "Files of a module that are compiled as one: 32 for a short build, 8 for a short turn after a change")
function(mulligan_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MULLIGAN_JOINED_FILES})
endfunction()

# mulligan_kernel_files(OUT PATTERN): the files of that name in the folders of kernels. The name says who compiles it:
# op*.cpp the module graph, cpu*.cpp and cuda*.c* the backends, *_test.cpp the kernel tests.
set(MULLIGAN_KERNELS "${PROJECT_SOURCE_DIR}/kernels")
function(mulligan_kernel_files out pattern)
  file(GLOB files CONFIGURE_DEPENDS "${MULLIGAN_KERNELS}/*/${pattern}")
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# The headers that most files of the framework read, compiled once.
function(mulligan_precompiled_headers target)
  if(NOT TARGET mulligan_headers)
    # An equal file keeps its time, and what is made of it stays.
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/headers.cpp" CONTENT "\n")
    add_library(mulligan_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/headers.cpp")
    target_link_libraries(mulligan_headers PUBLIC mulligan_options fmt::fmt)
    target_precompile_headers(mulligan_headers PRIVATE ${MULLIGAN_COMMON_HEADERS})
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # its definitions are the header's
  target_precompile_headers(${target} REUSE_FROM mulligan_headers)
endfunction()

# The headers of the SDK that most plugins with kernels read, compiled once for the plugins of this tree.
function(mulligan_plugin_headers)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/plugin_headers.cpp" CONTENT "\n")
  add_library(mulligan_plugin_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/plugin_headers.cpp")
  target_link_libraries(mulligan_plugin_headers PRIVATE ${MULLIGAN_PLUGIN_DEPENDS} mulligan::sdk)
  mulligan_cpu_kernel_options(mulligan_plugin_headers)
  target_precompile_headers(mulligan_plugin_headers PRIVATE <algorithm> <cmath> <string> <vector>
    <mulligan/optimizer.hpp> <mulligan/kernel.hpp> <mulligan/cuda/element_plan.hpp> <mulligan/cuda/fused_update_plan.hpp>)
  foreach(target ${ARGN})
    target_precompile_headers(${target} REUSE_FROM mulligan_plugin_headers)
  endforeach()
endfunction()

# mulligan_waiting_code(TARGET): code that waits for files, plugins and people, and computes nothing at length. Release builds
# compile it with -Og: 0.6 of the compiler's time of -O2, which is for what lies in a step's or a data set's way.
function(mulligan_waiting_code target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

# mulligan_computing_code(FILES ...): the files of a module of waiting code that do compute at length, and keep -O2.
function(mulligan_computing_code)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
endfunction()

# mulligan_module(NAME [WAITING] SOURCES ... [DEPENDS ...]): the static library mulligan_NAME of one framework folder.
function(mulligan_module name)
  cmake_parse_arguments(arg "WAITING" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(mulligan_${name} STATIC ${arg_SOURCES})
  target_link_libraries(mulligan_${name} PUBLIC mulligan_options ${arg_DEPENDS})
  mulligan_unity(mulligan_${name})
  mulligan_precompiled_headers(mulligan_${name})
  if(arg_WAITING)
    mulligan_waiting_code(mulligan_${name})
  endif()
endfunction()

# mulligan_carried_libraries(TARGET FOLDER): the dynamic linker looks for the libraries of TARGET in FOLDER, relative to
# the file, before the system's: the portable bundle carries them there, other builds have none there. RPATH, not
# RUNPATH: the program's holds for the libraries of its libraries and plugins too.
function(mulligan_carried_libraries target folder)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN/${folder}")
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
endfunction()

# mulligan_carried_test(PROGRAM): a test program that tests/gpu/pack takes along looks for libraries in its own folder.
function(mulligan_carried_test program)
  mulligan_carried_libraries(${program} ../lib/mulligan)
endfunction()

# mulligan_test_options(TARGET): test code is compiled with -O1 and one precompiled header of GoogleTest and the standard
# library. A file then takes 2.6 s of CPU time instead of 6.9 s.
function(mulligan_test_options target)
  if(NOT TARGET mulligan_test_headers)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "\n")
    add_library(mulligan_test_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(mulligan_test_headers PUBLIC mulligan_options GTest::gtest fmt::fmt)
    target_compile_options(mulligan_test_headers PRIVATE ${MULLIGAN_TEST_FLAGS})
    target_precompile_headers(mulligan_test_headers PRIVATE <gtest/gtest.h> ${MULLIGAN_COMMON_HEADERS})
  endif()
  target_compile_options(${target} PRIVATE ${MULLIGAN_TEST_FLAGS})
  target_link_libraries(${target} PRIVATE fmt::fmt)  # its definitions are the header's
  target_precompile_headers(${target} REUSE_FROM mulligan_test_headers)
endfunction()

# mulligan_joined_tests(TARGET): compiles up to MULLIGAN_JOINED_TESTS of its test files as one, in a third of the time. Each file
# has a namespace of its own.
set(MULLIGAN_JOINED_TESTS "16" CACHE STRING "Files of a test program that are compiled as one")
function(mulligan_joined_tests target)
  mulligan_test_options(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${MULLIGAN_JOINED_TESTS})
endfunction()

# mulligan_tests(PROGRAM [GROUP NAME] FILES ... [DEPENDS ...]): adds GoogleTest files to mulligan_PROGRAM_tests, and makes for each
# file F.cpp a program PROGRAM_F of its own (not part of `all`) for quick turns on one subject. mulligan_PROGRAM_tests is made of
# joined files; NAME is their object library, for other programs that hold the same tests. Definitions and dependencies that are
# set for PROGRAM_F_object hold there, too.
function(mulligan_tests program)
  cmake_parse_arguments(arg "" "GROUP" "FILES;DEPENDS" ${ARGN})
  if(NOT TARGET mulligan_${program}_tests)
    add_executable(mulligan_${program}_tests)
    target_link_libraries(mulligan_${program}_tests PRIVATE GTest::gtest_main)
    mulligan_carried_test(mulligan_${program}_tests)
    add_test(NAME ${program} COMMAND mulligan_${program}_tests)
  endif()
  set(group mulligan_${program}_test_objects)
  foreach(library ${arg_DEPENDS})
    if(library IN_LIST MULLIGAN_LEFT_OUT)
      return()
    endif()
    # Joined apart, so that a build without them joins the others alike, and finds them in the compiler's cache.
    if(library IN_LIST MULLIGAN_TOOLS_LIBRARIES OR library IN_LIST MULLIGAN_LAB_LIBRARIES)
      set(group mulligan_${program}_test_objects_beyond_the_core)
    endif()
  endforeach()
  if(arg_GROUP)
    set(group ${arg_GROUP})
  endif()
  if(NOT TARGET ${group})
    add_library(${group} OBJECT EXCLUDE_FROM_ALL)
    target_link_libraries(${group} PUBLIC mulligan_options GTest::gtest)
    mulligan_joined_tests(${group})
    target_sources(mulligan_${program}_tests PRIVATE $<TARGET_OBJECTS:${group}>)
  endif()
  target_link_libraries(${group} PUBLIC ${arg_DEPENDS})
  foreach(file ${arg_FILES})
    get_filename_component(stem "${file}" NAME_WE)
    set(object ${program}_${stem}_object)
    add_library(${object} OBJECT EXCLUDE_FROM_ALL "${file}")
    target_link_libraries(${object} PUBLIC mulligan_options GTest::gtest ${arg_DEPENDS})
    mulligan_test_options(${object})
    add_executable(${program}_${stem} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${object}>)
    target_link_libraries(${program}_${stem} PRIVATE GTest::gtest_main mulligan_options ${arg_DEPENDS})
    target_sources(${group} PRIVATE "${file}")
    target_compile_definitions(${group} PRIVATE $<TARGET_PROPERTY:${object},COMPILE_DEFINITIONS>)
    set_property(GLOBAL APPEND PROPERTY MULLIGAN_TEST_OBJECTS ${group}:${object})
  endforeach()
  target_link_libraries(mulligan_${program}_tests PRIVATE ${arg_DEPENDS})
endfunction()

# mulligan_test_dependencies(): what single test files depend on, their groups depend on. After all calls of mulligan_tests.
function(mulligan_test_dependencies)
  get_property(pairs GLOBAL PROPERTY MULLIGAN_TEST_OBJECTS)
  foreach(pair ${pairs})
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 group)
    list(GET pair 1 object)
    get_target_property(dependencies ${object} MANUALLY_ADDED_DEPENDENCIES)
    if(dependencies)
      add_dependencies(${group} ${dependencies})
    endif()
  endforeach()
endfunction()
