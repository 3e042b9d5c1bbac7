# The CPU's whole-tile operations, compiled once for each instruction set. Nothing of one file may
# reach another: each is compiled alone, and without the precompiled header.
function(tilewright_cpu_kernels file)
  set_source_files_properties(
    cpu/kernels/${file}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS
      # Sums and products are fused where the source says so, and nowhere else. Floats are compared
      # without traps, so that loops over them become vectors.
      # Nothing is thrown through them, so that they need no tables of how to get out.
      "$<$<NOT:$<CONFIG:Debug>>:-O3;-fno-exceptions;-fno-unwind-tables;\
-fno-asynchronous-unwind-tables>;-ffp-contract=off;-fno-trapping-math;-fno-math-errno;\
-fno-strict-aliasing;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>;\
$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>;${ARGN}")
endfunction()

set(tilewright_bf16_flags -march=x86-64-v4 -mavx512bf16 -mprefer-vector-width=512
    -Wno-unused-function)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  tilewright_cpu_kernels(v2 -march=x86-64-v2)
  tilewright_cpu_kernels(v3 -march=x86-64-v3)
  tilewright_cpu_kernels(v4 -march=x86-64-v4 -mprefer-vector-width=512)
  tilewright_cpu_kernels(bf16 ${tilewright_bf16_flags})
  tilewright_cpu_kernels(amx ${tilewright_bf16_flags} -mamx-tile -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  tilewright_cpu_kernels(baseline)
  tilewright_cpu_kernels(bf16 -march=armv8.2-a+bf16 -Wno-unused-function)
else()
  tilewright_cpu_kernels(baseline)
  set_source_files_properties(cpu/kernels/bf16.cpp PROPERTIES HEADER_FILE_ONLY ON)
endif()
