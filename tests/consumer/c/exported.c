/* What `tilewright build rms_norm` has written, compiled by gcc alone: on a driver that is not
 * there
 * ("absent"), and on one without a GPU, which takes a launch ("there"). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rms_norm.h"

static int fail(const char* what, const char* message) {
  fprintf(stderr, "failed: %s (%s)\n", what, message);
  return 1;
}

/* What a program does that uses CUDA: its calls make the first GPU's context current. */
static int make_current(const char* driver_name) {
  void* const driver = dlopen(driver_name, RTLD_NOW);
  int (*initialise)(unsigned), (*retain)(void**, int), (*set)(void*);
  void* const found[3] = {dlsym(driver, "cuInit"), dlsym(driver, "cuDevicePrimaryCtxRetain"),
                          dlsym(driver, "cuCtxSetCurrent")};
  void* context = NULL;
  memcpy(&initialise, &found[0], sizeof initialise);
  memcpy(&retain, &found[1], sizeof retain);
  memcpy(&set, &found[2], sizeof set);
  return initialise(0) == 0 && retain(&context, 0) == 0 && set(context) == 0;
}

int main(int count, char** words) {
  const int is_there = count > 1 && strcmp(words[1], "there") == 0;
  const int64_t shape[2] = {3, 64}, columns[1] = {64}, rows[1] = {3}, wrong[1] = {63};
  char message[256] = "";
  rms_norm_arguments arguments = {0};
  int status = rms_norm_load(0, message, sizeof message);
  if (!is_there) {
    if (status != 3 || message[0] == '\0') return fail("a driver that is not there", message);
    printf("without a driver: %s\n", message);
  } else if (status != 0 || !make_current(getenv("TILEWRIGHT_CUDA_DRIVER"))) {
    return fail("load", message);
  }
  arguments.size = sizeof arguments;
  /* Nothing is read or written there. */
  arguments.X = (tilewright_tensor){(void*)0x10000, "bf16", 2, shape, NULL};
  arguments.weight = (tilewright_tensor){(void*)0x20000, "bf16", 1, wrong, NULL};
  arguments.Y = (tilewright_tensor){(void*)0x30000, "bf16", 2, shape, NULL};
  arguments.RSTD = (tilewright_tensor){(void*)0x40000, "f32", 1, rows, NULL};
  if (rms_norm_check(&arguments, message, sizeof message) != 2) return fail("63 columns", message);
  printf("wrong sizes: %s\n", message);
  arguments.weight.shape = columns;
  if (rms_norm_check(&arguments, message, sizeof message) != 0) return fail("check", message);
  status = rms_norm_launch(&arguments, NULL);
  if (status != (is_there ? 0 : 3)) return fail("launch", words[1]);
  rms_norm_unload();
  return 0;
}
