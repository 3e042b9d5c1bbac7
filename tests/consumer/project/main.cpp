#include <cstdio>
#include <cstring>

#include "tilewright/compile.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/version.h"

using namespace tilewright;

int main() {
  if (std::strcmp(TILEWRIGHT_VERSION, EXPECTED_VERSION) != 0) {
    std::fprintf(stderr, "version.h says %s, the package %s\n", TILEWRIGHT_VERSION,
                 EXPECTED_VERSION);
    return 1;
  }
  HostTensor a = HostTensor::from_values(bf16, {1, 2}, {3, 4});
  HostTensor b = HostTensor::from_values(bf16, {1, 2}, {5, 6});
  HostTensor c = HostTensor::poisoned(bf16, {1, 1});
  const Executable gemm = compile(kernels::gemm({}), "interpreter");
  gemm.run({ref(a), ref(b), ref(c)});
  if (c.flat(0) != 39) {
    std::fprintf(stderr, "3 * 5 + 4 * 6 is %g\n", c.flat(0));
    return 1;
  }
  try {
    gemm.run({ref(a), ref(b)});
    std::fprintf(stderr, "a missing tensor is not an error\n");
    return 1;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage ? 0 : 1;
  }
}
