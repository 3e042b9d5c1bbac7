# Every missing package is named at once, with the command that installs it.
set(missing_packages "")

find_package(Threads REQUIRED)
macro(tilewright_require package debian_package)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND missing_packages ${debian_package})
  endif()
endmacro()

tilewright_require(fmt libfmt-dev)
tilewright_require(CLI11 libcli11-dev)
tilewright_require(nlohmann_json nlohmann-json3-dev)
# Only the header of xxhash is used, and its package has no CMake configuration.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(XXHASH_INCLUDE_DIR)
if(NOT XXHASH_INCLUDE_DIR)
  list(APPEND missing_packages libxxhash-dev)
endif()
if(TILEWRIGHT_TESTS)
  # Google Mock's package brings Google Test's, which may be here without it.
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gmock)
    list(APPEND missing_packages libgmock-dev)
  endif()
endif()
if(TILEWRIGHT_BENCHMARKS)
  tilewright_require(benchmark libbenchmark-dev)
endif()

if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "Tilewright needs packages that are not installed.\n"
                      "Run: sudo apt-get install ${missing_packages}")
endif()
