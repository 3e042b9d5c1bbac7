file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/prefix")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with ${status}: ${ARGN}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
set(common -G "${GENERATOR}" "-DEXPECTED_VERSION=${VERSION}")
set(cxx "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
        "-DCMAKE_CXX_FLAGS=${FLAGS}")
# Consumers have no fmt.
run("${CMAKE_COMMAND}" -S "${PROJECTS}/project" -B "${WORK}/build" ${common} ${cxx}
    "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON)
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")
# As a part of another project it is configured alone: its build is the one that is here.
run("${CMAKE_COMMAND}" -S "${PROJECTS}/fetched" -B "${WORK}/fetched" ${common} ${cxx}
    "-DSOURCE=${SOURCE}")
if(SANITIZED)  # a program of C would need the sanitizer too
  return()
endif()
run("${CMAKE_COMMAND}" -S "${PROJECTS}/c" -B "${WORK}/c" ${common} "-DCMAKE_PREFIX_PATH=${prefix}"
    -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON)
run("${CMAKE_COMMAND}" --build "${WORK}/c")
run("${WORK}/c/consumer")

find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  return()
endif()
file(GLOB_RECURSE packages "${prefix}/*.pc")
list(GET packages 0 folder)
get_filename_component(folder "${folder}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${folder}")
function(build_by_pkg_config package)
  execute_process(COMMAND "${pkg_config}" --cflags --libs ${package} OUTPUT_VARIABLE flags
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${ARGN} -o "${WORK}/${package}" ${flags} "-Wl,-rpath,${folder}/..")
  run("${WORK}/${package}")
endfunction()
build_by_pkg_config(tilewright-c cc -std=c99 -pedantic -Wall -Werror "${PROJECTS}/c/main.c")
build_by_pkg_config(tilewright "${COMPILER}" -std=c++20 "-DEXPECTED_VERSION=\"${VERSION}\""
                    "${PROJECTS}/project/main.cpp")
