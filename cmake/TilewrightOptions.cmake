include(GNUInstallDirs)

if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  set(TILEWRIGHT_IS_TOP_LEVEL ON)
else()
  set(TILEWRIGHT_IS_TOP_LEVEL OFF)
endif()

# Other compilers and newer versions warn of more, which must not stop a user's build.
if(TILEWRIGHT_IS_TOP_LEVEL
   AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
        OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")))
  set(compiler_is_tested ON)
else()
  set(compiler_is_tested OFF)
endif()
option(TILEWRIGHT_WERROR "Treat warnings of Tilewright's own code as errors" ${compiler_is_tested})
option(TILEWRIGHT_TESTS "Build the tests and the examples" ${TILEWRIGHT_IS_TOP_LEVEL})
option(TILEWRIGHT_BENCHMARKS "Build the benchmarks" OFF)
option(TILEWRIGHT_INSTALL "Create the install rules" ${TILEWRIGHT_IS_TOP_LEVEL})
set(TILEWRIGHT_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined")

if(TILEWRIGHT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
  endif()
  find_program(TILEWRIGHT_CCACHE ccache)
  mark_as_advanced(TILEWRIGHT_CCACHE)
  # ccache keeps what is compiled with a precompiled header only where it is told to.
  if(TILEWRIGHT_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER
                            OR CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache"))
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${TILEWRIGHT_CCACHE}")
  endif()
endif()

if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
  message(FATAL_ERROR "Tilewright needs GCC 12 or Clang 14 at least, and ${CMAKE_CXX_COMPILER} is "
                      "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}.\n"
                      "Name another with -DCMAKE_CXX_COMPILER=g++-12 in a fresh build folder.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The static libraries are also linked into libtilewright.so.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(TILEWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=${TILEWRIGHT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TILEWRIGHT_SANITIZE})
endif()
