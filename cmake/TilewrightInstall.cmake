include(CMakePackageConfigHelpers)

# Three parts, which are also the Debian packages: `runtime` is the shared library, `tools` the
# command, and `development` all that is compiled and linked against.
get_property(libraries GLOBAL PROPERTY TILEWRIGHT_LIBRARIES)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tilewright")
install(TARGETS tilewright_c EXPORT tilewright_c_targets
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS tilewright tilewright_kernels ${libraries} tilewright_fmt_archive
        EXPORT tilewright_targets ARCHIVE COMPONENT development)
install(TARGETS tilewright_command RUNTIME COMPONENT tools)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" "${PROJECT_BINARY_DIR}/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development FILES_MATCHING PATTERN "*.h")
foreach(targets IN ITEMS tilewright_c_targets tilewright_targets)
  install(EXPORT ${targets} NAMESPACE tilewright:: DESTINATION "${package_folder}"
          COMPONENT development)
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tilewright-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tilewright-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tilewright-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tilewright-config.cmake"
              "${PROJECT_BINARY_DIR}/tilewright-config-version.cmake"
        DESTINATION "${package_folder}" COMPONENT development)

# For pkg-config: `tilewright-c` is the C interface, and `tilewright` is that of C++, whose archives
# need each other. The folders follow from where the files lie.
set(archives "")
foreach(library IN LISTS libraries)
  list(APPEND archives "-l${library}")
endforeach()
string(JOIN " " TILEWRIGHT_ARCHIVES ${archives})
string(JOIN " " TILEWRIGHT_SYSTEM_LIBRARIES ${CMAKE_THREAD_LIBS_INIT} -pthread -l${CMAKE_DL_LIBS})
file(RELATIVE_PATH TILEWRIGHT_UP "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(name IN ITEMS tilewright tilewright-c)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
          COMPONENT development)
endforeach()

# `cpack -G DEB` in the build folder.
set(CPACK_PACKAGE_VENDOR "Tilewright")
set(CPACK_PACKAGE_CONTACT "Tilewright's authors <tilewright@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtilewright${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtilewright-dev)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tilewright)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libtilewright${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
# What the library and the command need of the C library is read from them by dpkg-dev.
find_program(TILEWRIGHT_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(TILEWRIGHT_SHLIBDEPS)
foreach(part IN ITEMS RUNTIME TOOLS)
  if(TILEWRIGHT_SHLIBDEPS)
    set(CPACK_DEBIAN_${part}_PACKAGE_SHLIBDEPS ON)
  else()
    set(CPACK_DEBIAN_${part}_PACKAGE_SHLIBDEPS OFF)
  endif()
endforeach()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The library of kernels with its C interface.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers, archives and package files to compile and link programs of C++ and C.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "The command tilewright: runs, simulates, explains and exports kernels.")
include(CPack)
