add_library(tilewright_warnings INTERFACE)
target_compile_options(tilewright_warnings INTERFACE
                       -Wall -Wextra -Werror=switch
                       $<$<BOOL:${TILEWRIGHT_WERROR}>:-Werror>)
# GCC 12 takes "text" + std::string() for a copy onto itself, or beyond the string's end, once it is
# inlined (GCC bug 105651 and its like).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tilewright_warnings INTERFACE -Wno-restrict -Wno-array-bounds
                         -Wno-stringop-overflow)
  # With a sanitizer, and at -Og, it takes a state of std::regex for uninitialised.
  if(TILEWRIGHT_SANITIZE)
    target_compile_options(tilewright_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

function(tilewright_version_header)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in"
                 "${PROJECT_BINARY_DIR}/include/tilewright/version.h" @ONLY)
endfunction()

# Public headers for everyone; what `include/` needs nothing else.
function(tilewright_public_includes target scope)
  target_include_directories(
    ${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} ${scope} cxx_std_20)
endfunction()

# Headers of others that most files include, parsed once. Files still name what they need: the preset
# debug builds without. Tests have a precompiled header of their own, since programs are compiled with
# other flags than libraries, and a precompiled header serves one set.
set(tilewright_common_headers
    <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <string> <string_view>
    <utility> <variant> <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "")
add_library(tilewright_precompiled OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
target_link_libraries(tilewright_precompiled PRIVATE tilewright_warnings fmt::fmt)
target_precompile_headers(tilewright_precompiled PRIVATE ${tilewright_common_headers})

# A third to a half of the compiler's time is saved where nothing loops for long.
function(tilewright_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Og>)
endfunction()

# The include table, read by tests/structure: `folder` sees include/, itself and the layers named.
function(tilewright_may_include folder)
  string(JOIN " " rule "${folder}" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_INCLUDE_RULES "${rule}")
endfunction()

# One folder of src/ is one static library. MAY_INCLUDE names the folders it may include, which is
# also all it links. MAY_NOT_INCLUDE names parts of header paths that are refused in other folders
# although the folder is allowed. OPTIONS are flags of this folder alone. A SELDOM_RUN folder is
# compiled fast rather than to be fast.
function(tilewright_layer name)
  cmake_parse_arguments(arg "SELDOM_RUN" "" "MAY_INCLUDE;MAY_NOT_INCLUDE;LINKS;EXCEPT;OPTIONS" ${ARGN})
  list(TRANSFORM arg_MAY_NOT_INCLUDE PREPEND "!" OUTPUT_VARIABLE refused)
  tilewright_may_include(src/${name} ${arg_MAY_INCLUDE} ${refused})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
  foreach(path IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${path}")
  endforeach()
  if(NOT sources)
    return()
  endif()

  set(target tilewright_${name})
  add_library(${target} STATIC ${sources})
  tilewright_public_includes(${target} PUBLIC)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  if(arg_OPTIONS)
    target_compile_options(${target} PRIVATE ${arg_OPTIONS})
    target_precompile_headers(${target} PRIVATE ${tilewright_common_headers})
  else()
    target_precompile_headers(${target} REUSE_FROM tilewright_precompiled)
  endif()
  if(arg_SELDOM_RUN)
    tilewright_compile_fast(${target})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  foreach(folder IN LISTS arg_MAY_INCLUDE)
    if(TARGET tilewright_${folder})
      target_link_libraries(${target} PUBLIC tilewright_${folder})
    endif()
  endforeach()
  # Whoever installs it gets fmt with it, under no name of fmt's own.
  list(TRANSFORM arg_LINKS REPLACE "^fmt::fmt$" "$<BUILD_INTERFACE:fmt::fmt>")
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tilewright_warnings> ${arg_LINKS}
                                          $<INSTALL_INTERFACE:tilewright::fmt>)
  set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_LIBRARIES ${target})
endfunction()

# Links those of the named layers that have sources.
function(tilewright_link_layers target)
  foreach(layer IN LISTS ARGN)
    if(TARGET tilewright_${layer})
      target_link_libraries(${target} PRIVATE tilewright_${layer})
    endif()
  endforeach()
endfunction()
