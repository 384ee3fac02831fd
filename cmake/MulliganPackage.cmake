# The Debian package: `cpack -G DEB` in a build folder, or the target `deb`, whose kernels run on CPUs in general.
# It holds the components runtime, sdk and documents; what the binaries need is looked up by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mulligan)
set(CPACK_PACKAGE_CONTACT "The mulligan authors <mulligan@mulligan.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains compact language models under a wall-clock budget")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"A native training runtime for record attempts at small language models:
trains under a wall-clock budget, quantises into a byte-limited artifact,
scores in bits per byte. Optimisers, losses, schedules and backends are
plugins. Headers and a CMake package for plugins of your own are included.")
# A package whose kernels are for this machine's CPU alone has another name.
if(MULLIGAN_CPU_ARCH STREQUAL "native")
  set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}+native")
else()
  set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime sdk documents)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/package/debian.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
include(CPack)
