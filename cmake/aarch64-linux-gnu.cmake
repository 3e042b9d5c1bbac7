# For 64-bit ARM from another machine, by Debian's compilers (g++-aarch64-linux-gnu):
#
#   cmake --preset release -B build/aarch64 --toolchain cmake/aarch64-linux-gnu.cmake \
#     -DTILEWRIGHT_SYSROOT=FOLDER -DTILEWRIGHT_TESTS=OFF
#
# The folder is a Debian of that architecture with libfmt-dev, as debootstrap --foreign unpacks it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TILEWRIGHT_SYSROOT)
set(fmt_DIR "${TILEWRIGHT_SYSROOT}/usr/lib/aarch64-linux-gnu/cmake/fmt" CACHE PATH "")
