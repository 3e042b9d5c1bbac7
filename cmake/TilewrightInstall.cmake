include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY TILEWRIGHT_LIBRARIES)
set(exported tilewright ${libraries})
foreach(target tilewright_kernels tilewright_c)
  if(TARGET ${target})
    list(APPEND exported ${target})
  endif()
endforeach()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tilewright")
install(TARGETS ${exported} EXPORT tilewright_targets)
if(TARGET tilewright_command)
  install(TARGETS tilewright_command)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" "${PROJECT_BINARY_DIR}/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT tilewright_targets NAMESPACE tilewright:: DESTINATION "${package_folder}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tilewright-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tilewright-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tilewright-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tilewright-config.cmake"
              "${PROJECT_BINARY_DIR}/tilewright-config-version.cmake"
        DESTINATION "${package_folder}")
