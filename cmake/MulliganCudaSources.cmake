# CUDA kernels of a plugin: mulligan_cuda_sources(TARGET FILES...) makes NAME.cu.inc of each NAME.cu, its text as a
# string literal, for the host file that registers the kernels and compiles the same file for the emulated device. Used by
# mulligan's own build and, installed, by plugins out of tree (find_package(mulligan)).
# Run as a script (cmake -DINPUT=a.cu -DOUTPUT=a.cu.inc -P MulliganCudaSources.cmake) it writes one such file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" text)
  file(WRITE "${OUTPUT}" "R\"mulligan(${text})mulligan\"\n")
  return()
endif()

set(MULLIGAN_CUDA_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(mulligan_cuda_sources target)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_sources")
  foreach(file ${ARGN})
    get_filename_component(name "${file}" NAME)
    get_filename_component(input "${file}" ABSOLUTE)
    add_custom_command(OUTPUT "${folder}/${name}.inc"
      COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${folder}/${name}.inc" -P "${MULLIGAN_CUDA_SCRIPT}"
      DEPENDS "${input}" "${MULLIGAN_CUDA_SCRIPT}" VERBATIM)
    target_sources(${target} PRIVATE "${folder}/${name}.inc")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
