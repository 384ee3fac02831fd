# How a plugin is built: in mulligan's own tree and, installed with the SDK, out of it (find_package(mulligan)).
#
#   mulligan_plugin(NAME SOURCES files... [CUDA_SOURCES files.cu...] [DEPENDS targets...] [CPU_KERNELS] [TARGET target])
#     The target mulligan_plugin_NAME (or `target`): the library mulligan_NAME.so of the plugin that the sources export as
#     NAME. CPU_KERNELS compiles for the CPU MULLIGAN_CPU_ARCH (default: this machine's) and optimises
#     floating-point loops that allow it. What the library exports is checked after each link.
#   mulligan_cuda_sources(TARGET [BASE folder] files.cu...)
#     Makes NAME.cu.inc of each NAME.cu, for the host file that registers the kernels: it includes NAME.cu, for the emulated
#     device (docs/cuda.md), and defines kSource, its text. NAME.cuh.inc of a NAME.cuh is a DeviceHeader. With
#     BASE, NAME is the file's path below that folder. CUDA_SOURCES does that, too.
#   mulligan_cpu_kernel_options(TARGET)
#     What CPU_KERNELS compiles with, for a library that several plugins are made of.
#   mulligan_check_exports(TARGET NAME)
#     After each link: the library exports mlg_plugin and nothing else.
#
# Set before, where wanted: MULLIGAN_PLUGIN_DIRECTORY (where the libraries go), MULLIGAN_PLUGIN_DEPENDS (targets with the
# project's own flags that every plugin links), MULLIGAN_CPU_ARCH (native, x86-64-v3, ...).
#
# As a script: cmake -DTASK=literal -DINPUT=a.cu -DOUTPUT=a.cu.inc -P MulliganPlugin.cmake
#              cmake -DTASK=exports -DLIBRARY=a.so -DNAME=a -DNM=nm -P MulliganPlugin.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
endif()
if(CMAKE_SCRIPT_MODE_FILE AND TASK STREQUAL "literal")
  file(READ "${INPUT}" text)
  set(literal "R\"mulligan(${text})mulligan\"")
  if(INPUT MATCHES "[.]cu$")
    set(literal "#include \"${INPUT}\"\nconstexpr char kSource[] = ${literal};")
  else()
    get_filename_component(name "${INPUT}" NAME)
    set(literal "{\"mulligan/cuda/${name}\", ${literal}},")
  endif()
  file(WRITE "${OUTPUT}" "${literal}\n")
  return()
endif()

if(CMAKE_SCRIPT_MODE_FILE AND TASK STREQUAL "exports")
  execute_process(COMMAND "${NM}" -D --defined-only -P "${LIBRARY}" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${table}")
  list(TRANSFORM lines REPLACE "[ @].*" "")
  set(others ${lines})
  list(REMOVE_ITEM others mlg_plugin)
  if(NOT "mlg_plugin" IN_LIST lines)
    message(FATAL_ERROR "${LIBRARY} exports no plugin; end the file of its class with the macro of its kind, for example "
                        "MULLIGAN_EXPORT_LOSS(Class, ${NAME});")
  elseif(others)
    message(FATAL_ERROR "${LIBRARY} exports ${others} besides mlg_plugin; hide them, or they are merged with those of other plugins.")
  endif()
  return()
endif()

set(MULLIGAN_PLUGIN_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(mulligan_plugin name)
  cmake_parse_arguments(arg "CPU_KERNELS" "TARGET" "SOURCES;CUDA_SOURCES;DEPENDS" ${ARGN})
  if(NOT name MATCHES "^[a-z0-9_]+$" OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mulligan_plugin(${name} ...): wanted is a name of [a-z0-9_]+ and SOURCES files "
                        "(not understood: '${arg_UNPARSED_ARGUMENTS}')")
  endif()
  set(target "mulligan_plugin_${name}")
  if(arg_TARGET)
    set(target "${arg_TARGET}")
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${MULLIGAN_PLUGIN_DEPENDS} mulligan::sdk ${arg_DEPENDS})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME "mulligan_${name}" CXX_EXTENSIONS OFF
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(MULLIGAN_PLUGIN_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${MULLIGAN_PLUGIN_DIRECTORY}")
  endif()
  if(arg_CPU_KERNELS)
    mulligan_cpu_kernel_options(${target})
    if(MULLIGAN_CPU_ARCH MATCHES "^x86-64-v[234]$")
      # Marked in the file: a lesser CPU's dynamic linker refuses it instead of meeting unknown instructions.
      target_link_options(${target} PRIVATE "-Wl,-z,${MULLIGAN_CPU_ARCH}")
    endif()
  endif()
  # Addresses that the dynamic linker fills in are read-only afterwards, and no stack is executable.
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  if(arg_CUDA_SOURCES)
    mulligan_cuda_sources(${target} ${arg_CUDA_SOURCES})
  endif()
  mulligan_check_exports(${target} ${name})
  set_property(GLOBAL APPEND PROPERTY MULLIGAN_PLUGIN_TARGETS ${target})
endfunction()

function(mulligan_cpu_kernel_options target)
  set(arch native)
  if(MULLIGAN_CPU_ARCH)
    set(arch ${MULLIGAN_CPU_ARCH})
  endif()
  # No -ffast-math: results must not depend on how a loop was split; fma contraction is fine. -fopenmp-simd: loops that say so
  # may use vector lanes (no threads come with it).
  target_compile_options(${target} PRIVATE
    -O3 -march=${arch} -mprefer-vector-width=512 -fno-math-errno -fno-trapping-math -fopenmp-simd)
endfunction()

function(mulligan_cuda_sources target)
  cmake_parse_arguments(arg "" "BASE" "" ${ARGN})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_sources")
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(name "${file}" NAME)
    get_filename_component(input "${file}" ABSOLUTE)
    if(arg_BASE)
      file(RELATIVE_PATH name "${arg_BASE}" "${input}")
    endif()
    add_custom_command(OUTPUT "${folder}/${name}.inc"
      COMMAND "${CMAKE_COMMAND}" -DTASK=literal "-DINPUT=${input}" "-DOUTPUT=${folder}/${name}.inc"
              -P "${MULLIGAN_PLUGIN_SCRIPT}"
      DEPENDS "${input}" "${MULLIGAN_PLUGIN_SCRIPT}" VERBATIM)
    target_sources(${target} PRIVATE "${folder}/${name}.inc")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()

# After the link the library exports `function` and nothing else.
function(mulligan_exports_only target function)
  # Templates of the standard library stay visible whatever the compiler's flags say; two libraries must not share them.
  set(map "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${map}" CONTENT "{ global: ${function}; local: *; };\n" @ONLY)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${map}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${map}")
endfunction()

function(mulligan_check_exports target name)
  mulligan_exports_only(${target} mlg_plugin)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -DTASK=exports "-DLIBRARY=$<TARGET_FILE:${target}>" "-DNAME=${name}" "-DNM=${CMAKE_NM}"
            -P "${MULLIGAN_PLUGIN_SCRIPT}" VERBATIM)
endfunction()
