/* A product on the target cpu, by an installed libtilewright.so. */
#include <stdio.h>

#include "tilewright/c_api.h"

int main(void) {
  float a[2] = {3, 4}, b[2] = {5, 6}, c[1] = {0};
  const int64_t row[2] = {1, 2}, one[2] = {1, 1};
  const tilewright_tensor tensors[3] = {
      {a, NULL, 2, row, NULL}, {b, NULL, 2, row, NULL}, {c, NULL, 2, one, NULL}};
  tilewright_kernel* kernel = NULL;
  if (tilewright_abi_version() < TILEWRIGHT_ABI ||
      tilewright_kernel_create("gemm", "dtype=f32", "cpu", 0, &kernel) != TILEWRIGHT_OK ||
      tilewright_kernel_run(kernel, tensors, 3, NULL) != TILEWRIGHT_OK) {
    fprintf(stderr, "%s\n", tilewright_last_error());
    return 1;
  }
  tilewright_kernel_destroy(kernel);
  printf("3 * 5 + 4 * 6 is %g\n", (double)c[0]);
  return c[0] == 39 ? 0 : 1;
}
