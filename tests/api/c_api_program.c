/* Drives libtilewright.so from C: a small gemm on the interpreter, and what goes wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tilewright/c_api.h"

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, tilewright_last_error());
  ++failures;
}

static void expect_error(tilewright_status status, tilewright_status wanted, const char* text) {
  expect(status == wanted, text);
  expect(strstr(tilewright_last_error(), text) != NULL, text);
}

static void multiplies(void) {
  tilewright_kernel* kernel = NULL;
  float a[2 * 3] = {1, 2, 3, 4, 5, 6};
  float b[2 * 4] = {1, 0, 2, -9, 0, 1, 1, -9}; /* rows of 3 in a pitch of 4 */
  float c[2 * 2] = {NAN, NAN, NAN, NAN};
  const int64_t shape_a[2] = {2, 3}, shape_c[2] = {2, 2}, strides_b[2] = {4, 1};
  tilewright_tensor tensors[3] = {
      {a, "f32", 2, shape_a, NULL}, {b, "f32", 2, shape_a, strides_b}, {c, NULL, 2, shape_c, NULL}};

  expect(tilewright_kernel_create("gemm", "dtype=f32", "interpreter", 0, &kernel) == TILEWRIGHT_OK,
         "create");
  expect(tilewright_kernel_tensor_count(kernel) == 3, "three tensors");
  expect(strcmp(tilewright_kernel_tensor_name(kernel, 1), "B") == 0, "the second is B");
  for (int32_t no_tensor = -1; no_tensor <= 3; no_tensor += 4) {
    expect(tilewright_kernel_tensor_name(kernel, no_tensor) == NULL, "none has a name");
    expect(tilewright_kernel_tensor_dtype(kernel, no_tensor) == NULL, "none has a dtype");
    expect(tilewright_kernel_tensor_rank(kernel, no_tensor) == 0, "none has axes");
    expect(!tilewright_kernel_tensor_is_input(kernel, no_tensor), "none is an input");
    expect(!tilewright_kernel_tensor_is_output(kernel, no_tensor), "none is an output");
    expect(tilewright_kernel_scalar_name(kernel, no_tensor) == NULL, "none is a scalar");
  }
  expect(tilewright_kernel_scalar_name(kernel, tilewright_kernel_scalar_count(kernel)) == NULL,
         "none behind the last scalar");
  expect(!tilewright_kernel_tensor_is_output(kernel, 0), "A is an input");
  expect(tilewright_kernel_tensor_is_output(kernel, 2), "C is an output");
  expect(tilewright_kernel_run(kernel, tensors, 3, NULL) == TILEWRIGHT_OK, "run");
  expect(c[0] == 7 && c[1] == 5 && c[2] == 16 && c[3] == 11, "the product");

  {
    const int64_t numbers[15] = {(int64_t)(intptr_t)a, 2, 3, 3, 1, (int64_t)(intptr_t)b, 2, 3, 4, 1,
                                 (int64_t)(intptr_t)c, 2, 2, 2, 1};
    memset(c, 0, sizeof c);
    expect(tilewright_kernel_run_flat(kernel, numbers, 15, NULL) == TILEWRIGHT_OK,
           "run of numbers");
    expect(c[0] == 7 && c[1] == 5 && c[2] == 16 && c[3] == 11, "the product of numbers");
    expect_error(tilewright_kernel_run_flat(kernel, numbers, 14, NULL), TILEWRIGHT_ERROR_USAGE,
                 "gemm takes 15 numbers, and 14 are given");
    expect_error(tilewright_kernel_run_flat(kernel, numbers, 16, NULL), TILEWRIGHT_ERROR_USAGE,
                 "gemm takes 15 numbers, and 16 are given");
    expect_error(tilewright_kernel_run_flat(kernel, NULL, 15, NULL), TILEWRIGHT_ERROR_USAGE,
                 "gemm takes 15 numbers, and none are given");
    expect_error(tilewright_kernel_run_flat(NULL, numbers, 15, NULL), TILEWRIGHT_ERROR_USAGE,
                 "the kernel is NULL");
  }
  expect_error(tilewright_kernel_run(kernel, tensors, 2, NULL), TILEWRIGHT_ERROR_USAGE,
               "gemm takes 3 tensors, and 2 are given");
  expect_error(tilewright_kernel_run(kernel, NULL, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "the tensors of gemm are NULL");
  expect_error(tilewright_kernel_run(NULL, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "the kernel is NULL");
  tensors[1].dtype = "f16";
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE, "f16");
  tensors[1].dtype = "half";
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "tensor B: unknown dtype \"half\"\n  fix: use one of ");
  tensors[1].dtype = "f32";
  tensors[1].shape = NULL;
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "tensor B has no shape, and gemm takes rank 2");
  tensors[1].shape = shape_c;
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "error: gemm: the dim k is 3 by axis 1 of A, but 2 by axis 1 of B\n  fix: tensors");
  expect(strstr(tilewright_last_error(), ".cpp") == NULL, "no line that C has no source of");
  tensors[1].shape = shape_a;
  tensors[1].data = NULL;
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE,
               "error: gemm: tensor B has no data: its address is null\n  fix: allocate");
  tensors[1].data = b;
  tensors[1].rank = 1;
  expect_error(tilewright_kernel_run(kernel, tensors, 3, NULL), TILEWRIGHT_ERROR_USAGE, "B");
  tilewright_kernel_destroy(kernel);
}

/* A loop of the host's, one part after the other; `context` counts them. */
static void in_turn(void* context, int32_t parts, void (*call)(void* work, int32_t part),
                    void* work) {
  for (int32_t part = 0; part < parts; ++part) call(work, part);
  *(int*)context += parts;
}

static void lends_threads(void) {
  enum { kRows = 600, kTerms = 3 };
  static float a[kRows * kTerms], b[kTerms], c[kRows];
  tilewright_kernel* kernel = NULL;
  const int64_t shape_a[2] = {kRows, kTerms}, shape_b[2] = {1, kTerms}, shape_c[2] = {kRows, 1};
  const tilewright_tensor tensors[3] = {
      {a, NULL, 2, shape_a, NULL}, {b, NULL, 2, shape_b, NULL}, {c, NULL, 2, shape_c, NULL}};
  int parts = 0, right = 1;
  for (int i = 0; i < kRows * kTerms; ++i) a[i] = (float)(i / kTerms);
  for (int i = 0; i < kTerms; ++i) b[i] = 1;

  expect(tilewright_kernel_create("gemm", "dtype=f32", "cpu", 0, &kernel) == TILEWRIGHT_OK,
         "create");
  expect(tilewright_set_parallel_for(in_turn, &parts, 2) == TILEWRIGHT_OK, "lend");
  expect(tilewright_kernel_run(kernel, tensors, 3, NULL) == TILEWRIGHT_OK, "run");
  for (int i = 0; i < kRows; ++i) right = right && c[i] == (float)(kTerms * i);
  expect(right, "the product");
  expect(parts == 2, "the host was asked for two parts");
  expect_error(tilewright_set_parallel_for(in_turn, &parts, 0), TILEWRIGHT_ERROR_USAGE,
               "parallel_for has 0 threads");
  expect_error(tilewright_set_parallel_for(in_turn, &parts, 4097), TILEWRIGHT_ERROR_USAGE,
               "1 to 4096");
  expect(tilewright_set_parallel_for(NULL, NULL, 0) == TILEWRIGHT_OK, "take back");
  expect(tilewright_kernel_run(kernel, tensors, 3, NULL) == TILEWRIGHT_OK, "run");
  expect(parts == 2, "the host is asked no more");
  tilewright_kernel_destroy(kernel);
}

/* What runs where the caller names no target. */
/* A page that is not there, found by a check, and without checks by the store itself. */
static void checks(void) {
  static const char options[] =
      "tokens=1,batch=1,pages=2,max_pages=1,page=1,kv_heads=1,dim=8,dtype=f32";
  static float row[8], keys[2 * 8], values[2 * 8];
  static int32_t zero[1] = {0}, page[1] = {5};
  static const int64_t ones[3] = {1, 1, 8}, cache[4] = {2, 1, 1, 8};
  const tilewright_tensor tensors[7] = {{row, NULL, 3, ones, NULL},    {row, NULL, 3, ones, NULL},
                                        {zero, NULL, 1, ones, NULL},   {zero, NULL, 1, ones, NULL},
                                        {page, NULL, 2, ones, NULL},   {keys, NULL, 4, cache, NULL},
                                        {values, NULL, 4, cache, NULL}};
  tilewright_kernel* kernel = NULL;
  expect(tilewright_kernel_create_checked("kv_append", options, "sim:sm_90a", 0, &kernel) ==
             TILEWRIGHT_OK,
         "create with checks");
  expect_error(tilewright_kernel_run(kernel, tensors, 7, NULL), TILEWRIGHT_ERROR_RESULT,
               "\n  check  check ");
  tilewright_kernel_destroy(kernel);
  expect(tilewright_kernel_create("kv_append", options, "sim:sm_90a", 0, &kernel) == TILEWRIGHT_OK,
         "create without checks");
  expect_error(tilewright_kernel_run(kernel, tensors, 7, NULL), TILEWRIGHT_ERROR_RESULT,
               "\n  write  store");
  tilewright_kernel_destroy(kernel);
}

/* Floats are doubles there, and numbers of pages stay what they are. */
static void runs_in_float64(void) {
  static const char options[] =
      "tokens=1,batch=1,pages=2,max_pages=1,page=1,kv_heads=1,dim=2,dtype=f32";
  static double row[2] = {1.0 / 3, 2}, keys[2 * 2], values[2 * 2];
  static int32_t zero[1] = {0}, page[1] = {1};
  static const int64_t ones[3] = {1, 1, 2}, cache[4] = {2, 1, 1, 2};
  tilewright_tensor tensors[7] = {{row, "f64", 3, ones, NULL},    {row, "f64", 3, ones, NULL},
                                  {zero, "i32", 1, ones, NULL},   {zero, NULL, 1, ones, NULL},
                                  {page, "i32", 2, ones, NULL},   {keys, "f64", 4, cache, NULL},
                                  {values, "f64", 4, cache, NULL}};
  tilewright_kernel* kernel = NULL;
  expect(tilewright_kernel_create("kv_append", options, "interpreter", 0, &kernel) == TILEWRIGHT_OK,
         "create");
  expect(tilewright_kernel_run_in_float64(kernel, tensors, 7) == TILEWRIGHT_OK, "run in float64");
  expect(keys[0] == 0 && keys[2] == 1.0 / 3 && values[3] == 2, "not rounded");
  tensors[1].dtype = "f32";
  expect_error(tilewright_kernel_run_in_float64(kernel, tensors, 7), TILEWRIGHT_ERROR_USAGE,
               "tensor V is f32, and the run is in float64");
  tensors[1].dtype = NULL;
  expect_error(tilewright_kernel_run_in_float64(kernel, tensors, 7), TILEWRIGHT_ERROR_USAGE,
               "tensor V is of no dtype, and the run is in float64");
  tilewright_kernel_destroy(kernel);
}

static void default_target(void) {
  const char* const target = tilewright_default_target();
  tilewright_kernel* kernel = NULL;
  expect(strcmp(target, "cpu") == 0 || strcmp(target, "cuda") == 0, target);
  if (strcmp(target, "cpu") == 0) {
    expect(tilewright_kernel_create("gemm", NULL, NULL, 0, &kernel) == TILEWRIGHT_OK, "create");
  }
  tilewright_kernel_destroy(kernel);
}

static void refuses(void) {
  tilewright_kernel* kernel = (tilewright_kernel*)1;
  expect_error(tilewright_kernel_create("gem", "", "interpreter", 0, &kernel),
               TILEWRIGHT_ERROR_USAGE, "there is no kernel 'gem'; the nearest name is gemm\n");
  expect(kernel == NULL, "the kernel is NULL after a failure");
  expect_error(tilewright_kernel_create("gemm", "dtype=f32,tile=3", "interpreter", 0, &kernel),
               TILEWRIGHT_ERROR_USAGE, "gemm has no option 'tile'");
  expect_error(
      tilewright_kernel_create("attention_varlen_forward", "lengths_q=3,5", "cpu", 0, &kernel),
      TILEWRIGHT_ERROR_USAGE, "'5' of \"lengths_q=3,5\" is no setting");
  expect_error(tilewright_kernel_create("gemm", NULL, "gpu", 0, &kernel), TILEWRIGHT_ERROR_USAGE,
               "there is no target 'gpu'");
  expect_error(tilewright_kernel_create(NULL, NULL, "cpu", 0, &kernel), TILEWRIGHT_ERROR_USAGE,
               "the kernel is NULL");
  expect_error(tilewright_kernel_create("gemm", NULL, "", 0, &kernel), TILEWRIGHT_ERROR_USAGE,
               "there is no target ''");
  expect_error(tilewright_kernel_create("gemm", NULL, "interpreter", 0, NULL),
               TILEWRIGHT_ERROR_USAGE, "the place for the kernel is NULL");
  tilewright_kernel_destroy(NULL);
}

/* Of a text: a kernel that was compiled is simulated alone. */
static void texts(void) {
  static const char machine[] =
      "kernel \"nothing\" machine\nin X: f32[4] = %0\ngrid (1)\ncluster 1\nthreads 32\n"
      "resident 1\nshared_bytes 0\nbody () {\n}\n";
  tilewright_kernel* kernel = (tilewright_kernel*)1;
  expect_error(
      tilewright_kernel_create_from_text(machine, "nothing.tw", NULL, "interpreter", 0, &kernel),
      TILEWRIGHT_ERROR_USAGE, "nothing is in the machine form");
  expect(kernel == NULL, "the kernel is NULL after a failure");
}

/* What is destroyed is known to be, until another kernel takes its place. */
static void destroyed_kernels(void) {
  tilewright_kernel* kernel = NULL;
  expect(tilewright_kernel_create("gemm", NULL, "interpreter", 0, &kernel) == TILEWRIGHT_OK,
         "create");
  tilewright_kernel_destroy(kernel);
  tilewright_kernel_destroy(kernel);
  expect_error(tilewright_kernel_run(kernel, NULL, 0, NULL), TILEWRIGHT_ERROR_USAGE,
               "the kernel is not there");
  expect_error(tilewright_kernel_prepare(kernel), TILEWRIGHT_ERROR_USAGE, "it was destroyed");
  expect(tilewright_kernel_tensor_count(kernel) == 0, "it takes no tensor");
  expect(tilewright_kernel_tensor_name(kernel, 0) == NULL, "none has a name");
  expect(tilewright_kernel_variant_count(kernel) == 0, "it has no variant");
}

/* A value that does not fit at first is asked for again, with room for all of it. */
static int64_t room_asked_last = 0;
static int32_t set_nothing(void* context, const char* key, const char* value, int64_t size) {
  (void)context, (void)key, (void)value, (void)size;
  return 0;
}
static int32_t get_long_value(void* context, const char* key, char* value, int64_t room,
                              int64_t* size) {
  (void)context, (void)key;
  const int first = room_asked_last == 0;
  room_asked_last = room;
  memset(value, 'x', (size_t)room);
  *size = room + 1;
  return first ? 0 : 1;
}
static int32_t wait_for_nothing(void* context, const char* key, double seconds) {
  (void)context, (void)key, (void)seconds;
  return 0;
}
static void stores(void) {
  const tilewright_store store = {NULL, set_nothing, get_long_value, wait_for_nothing};
  const tilewright_group_options second = {1, 2, NULL, 0.2, 0};
  tilewright_group* group = NULL;
  expect_error(tilewright_group_create_by_store(&store, "key", &second, &group),
               TILEWRIGHT_ERROR_UNAVAILABLE, "the store fails to get key");
  expect(room_asked_last == 1025, "it is asked again with room for one byte more");
}

/* A group of one rank: what several say to each other is tested from Python. */
static void groups(void) {
  const tilewright_group_options alone = {0, 1, NULL, 0, 0}, wrong = {2, 2, NULL, 0, 0};
  const tilewright_group_options hasty = {0, 1, NULL, 1e-5, 0}, never = {0, 1, NULL, -1, 0};
  tilewright_group* group = (tilewright_group*)1;
  tilewright_symmetric* memory = (tilewright_symmetric*)1;
  tilewright_kernel* kernel = NULL;
  const void* data[1] = {NULL};
  int64_t sizes[1] = {0}, offset = -1;
  float sent[2] = {1.5F, -2}, got[2] = {NAN, NAN};

  expect_error(tilewright_group_create_by_file("unused", &wrong, &group), TILEWRIGHT_ERROR_USAGE,
               "rank 2 of 2 ranks");
  expect(group == NULL, "the group is NULL after a failure");
  expect_error(tilewright_group_create_by_file(NULL, &alone, &group), TILEWRIGHT_ERROR_USAGE,
               "the path of the file is NULL");
  expect_error(tilewright_group_create_by_store(NULL, "key", &alone, &group),
               TILEWRIGHT_ERROR_USAGE, "the store is NULL");
  expect_error(tilewright_group_barrier(NULL, "x"), TILEWRIGHT_ERROR_USAGE, "the group is NULL");
  expect(tilewright_group_rank(NULL) == -1 && tilewright_group_size(NULL) == -1, "no group");

  expect_error(tilewright_group_create_by_file("unused", &never, &group), TILEWRIGHT_ERROR_USAGE,
               "a group's patience of -1 s");
  expect(tilewright_group_create_by_file("unused", &hasty, &group) == TILEWRIGHT_OK,
         "a patience below a millisecond is one");
  tilewright_group_destroy(group);

  expect(tilewright_group_create_by_file("unused", &alone, &group) == TILEWRIGHT_OK, "group");
  expect(tilewright_group_rank(group) == 0 && tilewright_group_size(group) == 1, "rank 0 of 1");
  expect(tilewright_group_barrier(group, "begin") == TILEWRIGHT_OK, "barrier");
  expect_error(tilewright_group_barrier(group, NULL), TILEWRIGHT_ERROR_USAGE,
               "the barrier is NULL");
  expect(tilewright_group_all_gather(group, "all", "ab", 2, data, sizes) == TILEWRIGHT_OK,
         "all_gather");
  expect(sizes[0] == 2 && memcmp(data[0], "ab", 2) == 0, "what was given");
  expect_error(tilewright_group_all_gather(group, "all", "ab", -1, data, sizes),
               TILEWRIGHT_ERROR_USAGE, "-1 bytes");
  expect(tilewright_group_lost(group, NULL, 0) == 0, "nobody is lost");
  expect(tilewright_group_require_all(group, "the end") == TILEWRIGHT_OK, "all are there");

  expect_error(tilewright_symmetric_create(group, 4096, "x", "disk", 0, &memory),
               TILEWRIGHT_ERROR_USAGE, "symmetric memory on 'disk'");
  expect(memory == NULL, "the memory is NULL after a failure");
  expect(tilewright_symmetric_create(group, 4096, "x", "host", 0, &memory) == TILEWRIGHT_OK,
         "memory");
  expect(tilewright_symmetric_size(memory) == 4096, "its size");
  expect(tilewright_symmetric_allocate(memory, 8, "pair", 64, &offset) == TILEWRIGHT_OK, "a part");
  expect(tilewright_symmetric_write(memory, 0, offset, sent, 8) == TILEWRIGHT_OK, "write");
  expect(tilewright_symmetric_read(memory, 0, offset, got, 8) == TILEWRIGHT_OK, "read");
  expect(got[0] == sent[0] && got[1] == sent[1], "what was written");
  expect(memcmp((char*)tilewright_symmetric_address(memory, 0) + offset, sent, 8) == 0, "address");
  expect(tilewright_symmetric_address(memory, 1) == NULL, "no rank 1");
  expect_error(tilewright_symmetric_read(memory, 0, 4090, got, 8), TILEWRIGHT_ERROR_USAGE,
               "8 bytes at offset 4090 of x, which has 4096 bytes");
  expect_error(tilewright_symmetric_write(memory, 1, 0, sent, 8), TILEWRIGHT_ERROR_USAGE,
               "rank 1 of 1 ranks");

  expect_error(tilewright_kernel_create_in_group("gemm", NULL, group, 0, &kernel),
               TILEWRIGHT_ERROR_USAGE, "gemm runs on one GPU");
  tilewright_group_destroy(group);
  expect_error(tilewright_kernel_create_in_group("gemm", NULL, group, 0, &kernel),
               TILEWRIGHT_ERROR_USAGE, "the group is not there");
  /* What was made with it keeps it. */
  expect(tilewright_symmetric_read(memory, 0, offset, got, 8) == TILEWRIGHT_OK, "read again");
  tilewright_symmetric_destroy(memory);
  tilewright_symmetric_destroy(memory);
  expect_error(tilewright_symmetric_read(memory, 0, 0, got, 8), TILEWRIGHT_ERROR_USAGE,
               "the symmetric memory is not there");
  tilewright_group_destroy(group);
}

int main(void) {
  expect(strcmp(tilewright_last_error(), "") == 0, "no error before a call");
  expect(tilewright_abi_version() == TILEWRIGHT_ABI, "built with this header");
  expect(tilewright_version()[0] >= '0' && tilewright_version()[0] <= '9', "the version");
  multiplies();
  lends_threads();
  checks();
  runs_in_float64();
  default_target();
  refuses();
  texts();
  destroyed_kernels();
  stores();
  groups();
  return failures == 0 ? 0 : 1;
}
