#ifndef TILEWRIGHT_C_API_H
#define TILEWRIGHT_C_API_H

#include <stdint.h>

/* The kernels of Tilewright's library for C and for languages that call C: libtilewright.so.
 *
 *   tilewright_kernel* kernel;
 *   if (tilewright_kernel_create("gemm", "dtype=bf16", "cuda", 0, &kernel) != TILEWRIGHT_OK) {
 *     fprintf(stderr, "%s\n", tilewright_last_error());
 *   }
 *   tilewright_tensor tensors[3] = {{a, "bf16", 2, a_shape, NULL}, ...};
 *   tilewright_kernel_run(kernel, tensors, 3, stream);
 *
 * No function throws, exits or prints. All may be called from any thread; a kernel may be run by
 * several threads at once, and must not be destroyed while it is. */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TILEWRIGHT_API __attribute__((visibility("default")))
#else
#define TILEWRIGHT_API
#endif

typedef enum tilewright_status {
  TILEWRIGHT_OK = 0,
  TILEWRIGHT_ERROR_RESULT = 1,      /* a run has a fault, on a simulated GPU or on a real one */
  TILEWRIGHT_ERROR_USAGE = 2,       /* an argument is wrong */
  TILEWRIGHT_ERROR_UNAVAILABLE = 3, /* a GPU, the driver, NVRTC or memory is missing */
  TILEWRIGHT_ERROR_INTERNAL = 4     /* a bug of Tilewright */
} tilewright_status;

/* A kernel of the library, compiled for one target. */
typedef struct tilewright_kernel tilewright_kernel;

/* A tensor that a run reads or writes. */
typedef struct tilewright_tensor {
  void* data;             /* element 0: in the GPU's memory for cuda, else in the host's */
  const char* dtype;      /* "bf16", "f16", "f32", "f8e4m3", "i32", ...; NULL: the kernel's own */
  int32_t rank;           /* number of axes */
  const int64_t* shape;   /* elements of each axis */
  const int64_t* strides; /* in elements; NULL for row-major */
} tilewright_tensor;

/* "0.1.0" */
TILEWRIGHT_API const char* tilewright_version(void);

/* What the last call of this thread that failed had to say; "" before one has. It is valid until
 * the thread's next call. */
TILEWRIGHT_API const char* tilewright_last_error(void);

/* Builds a kernel. `options` is a comma-separated list such as "heads=16,dim=128,causal=true" (see
 * tilewright list), with the fields of a tile-level kernel's schedule as "schedule.stages=3"; NULL
 * or "" for none. A kernel takes all lengths, whichever are set here.
 * `target` is "cuda" (the GPU number `device`), or "interpreter" or "sim:sm_90a", which run on the
 * host. `*kernel` is NULL on failure: USAGE for an unknown name, option or target and for options
 * that do not fit together, UNAVAILABLE where the target is not on this machine. */
TILEWRIGHT_API tilewright_status tilewright_kernel_create(const char* name, const char* options,
                                                          const char* target, int32_t device,
                                                          tilewright_kernel** kernel);

/* The same, and on a GPU, real or simulated, the kernel checks the loaded numbers that decide where
 * it accesses memory. A run on cuda then ends when its work is done, and is RESULT for a number out
 * of bounds; the process can no longer use that GPU behind it. */
TILEWRIGHT_API tilewright_status tilewright_kernel_create_checked(const char* name,
                                                                  const char* options,
                                                                  const char* target,
                                                                  int32_t device,
                                                                  tilewright_kernel** kernel);

/* NULL is allowed, and so is a kernel that was destroyed. Any other use of one is USAGE, unless a
 * new kernel has its address. */
TILEWRIGHT_API void tilewright_kernel_destroy(tilewright_kernel* kernel);

/* Number of tensors that a run takes; 0 for a NULL kernel. Of an operation over ranks they are all
 * of rank 0, then all of rank 1, and so on. */
TILEWRIGHT_API int32_t tilewright_kernel_tensor_count(const tilewright_kernel* kernel);
/* The name of one of them, in the order in which a run takes them; NULL when there is none. */
TILEWRIGHT_API const char* tilewright_kernel_tensor_name(const tilewright_kernel* kernel,
                                                         int32_t index);
/* 1 when the kernel writes it, else 0. */
TILEWRIGHT_API int32_t tilewright_kernel_tensor_is_output(const tilewright_kernel* kernel,
                                                          int32_t index);

/* How many variants the kernel's rules choose among, by the sizes of a run: each is built once, for
 * all sizes. 0 for NULL. */
TILEWRIGHT_API int32_t tilewright_kernel_variant_count(const tilewright_kernel* kernel);
/* Builds those variants that are not built yet. Without it the first run that needs one waits for
 * its build; only the one for the options' own sizes is built at creation. USAGE for a NULL kernel
 * and for a variant that cannot be built, UNAVAILABLE where its compiler is missing. */
TILEWRIGHT_API tilewright_status tilewright_kernel_prepare(const tilewright_kernel* kernel);

/* On cuda, queues one run on `stream` (a CUstream or cudaStream_t; NULL: the default stream) and
 * returns; the tensors must stay until the stream has passed it. On the other targets it is done at
 * return. USAGE for a NULL kernel, where the number, dtypes, shapes or strides of the tensors do
 * not fit the kernel, and where rows that TMA copies do not begin at multiples of 16 bytes;
 * UNAVAILABLE where memory runs out, or the variant's compiler is missing; RESULT for a fault. */
TILEWRIGHT_API tilewright_status tilewright_kernel_run(const tilewright_kernel* kernel,
                                                       const tilewright_tensor* tensors,
                                                       int32_t count, void* stream);

/* Does all of a run on cuda but queue its work: builds the variant, and allocates the memory that
 * it needs beside the tensors, for this stream and these sizes. A run with the same arguments
 * neither allocates nor waits, and can be captured in a CUDA graph; a capture without it, and
 * without an earlier run, is an error. The same statuses as tilewright_kernel_run; on the other
 * targets there is nothing to do. */
TILEWRIGHT_API tilewright_status tilewright_kernel_prepare_run(const tilewright_kernel* kernel,
                                                               const tilewright_tensor* tensors,
                                                               int32_t count, void* stream);

/* On cuda, queues one run of an operation over ranks, such as gemm_reduce_scatter: rank n is GPU n,
 * on which its tensors lie, and `streams` has one stream for each rank (NULL: the default streams).
 * What the ranks tell each other is kept from run to run, so that one thread at a time runs a
 * kernel. Statuses as of tilewright_kernel_run; USAGE for a kernel of one GPU. */
TILEWRIGHT_API tilewright_status tilewright_kernel_run_on_gpus(const tilewright_kernel* kernel,
                                                               const tilewright_tensor* tensors,
                                                               int32_t count, void* const* streams,
                                                               int32_t gpus);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_C_API_H */
