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
 * No function throws or exits, and what one prints can be taken (tilewright_set_log). All may be
 * called from any thread; a kernel may be run by several threads at once, and must not be destroyed
 * while it is. */

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

/* A program can call a library whose tilewright_abi_version() is at least the TILEWRIGHT_ABI that
 * the program was compiled with: functions are added, and keep what they take. */
#define TILEWRIGHT_ABI 1
TILEWRIGHT_API int32_t tilewright_abi_version(void);

/* "cuda" where this machine has a GPU that Tilewright compiles for, else "cpu". */
TILEWRIGHT_API const char* tilewright_default_target(void);

/* Calls `call(work, part)` once for each part from 0 to `parts` - 1, on any threads and in any
 * order, also one after the other, and returns when all have returned. */
typedef void (*tilewright_parallel_for)(void* context, int32_t parts,
                                        void (*call)(void* work, int32_t part), void* work);
/* From the next run on, kernels on the target cpu compute on threads of the host's, through its
 * function and in `threads` parts at most, instead of threads of Tilewright's own. So two pools do
 * not take each other's processors. TILEWRIGHT_THREADS, where it is set, says how many parts. NULL
 * for the function: Tilewright's own again. USAGE for less than 1 thread, or more than 4096. The
 * function throws nothing: an exception of C++ cannot cross this library, and ends the process, as
 * one that nobody catches does. */
TILEWRIGHT_API tilewright_status tilewright_set_parallel_for(tilewright_parallel_for parallel_for,
                                                             void* context, int32_t threads);

/* What the library says while it works, without a newline at the end: which kernel it has compiled,
 * in what time, or has found where (`is_warning` 0), and what costs time, such as a cache that it
 * cannot use (1). In any thread, one call at a time; it calls nothing of the library.
 * NULL: warnings go to standard error, the rest nowhere, as in the beginning. */
typedef void (*tilewright_log)(void* context, int32_t is_warning, const char* text);
TILEWRIGHT_API void tilewright_set_log(tilewright_log log, void* context);

/* What the last call of this thread that failed had to say; "" before one has. It is valid until
 * the thread's next call. */
TILEWRIGHT_API const char* tilewright_last_error(void);

/* Builds a kernel. `options` is a comma-separated list such as "heads=16,dim=128,causal=true" (see
 * tilewright list), with the fields of a tile-level kernel's schedule as "schedule.stages=3"; NULL
 * or "" for none. A kernel takes all lengths, whichever are set here.
 * `target` is "cuda" (the GPU number `device`), or "cpu", "interpreter" or "sim:sm_90a", which run
 * on the host; NULL is what tilewright_default_target says. `*kernel` is NULL on failure: USAGE for
 * an unknown name, option or target and for options that do not fit together, UNAVAILABLE where the
 * target is not on this machine. */
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

/* A kernel of one's own, from the text that TILEWRIGHT_DUMP or a plug-in (tilewright/plugin.h)
 * makes of it: NAME.tw. `file` is what errors call the text, NULL for "kernel.tw". `schedule` is a
 * comma-separated list such as "stages=3", NULL or "" for what the kernel says itself. Statuses as
 * of tilewright_kernel_create; USAGE, with the line, for a text that is no kernel. */
TILEWRIGHT_API tilewright_status
tilewright_kernel_create_from_text(const char* text, const char* file, const char* schedule,
                                   const char* target, int32_t device, tilewright_kernel** kernel);

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

/* 1 when it reads what is there: an input, or an output that is one too. */
TILEWRIGHT_API int32_t tilewright_kernel_tensor_is_input(const tilewright_kernel* kernel,
                                                         int32_t index);
/* "bf16"; NULL when there is none. */
TILEWRIGHT_API const char* tilewright_kernel_tensor_dtype(const tilewright_kernel* kernel,
                                                          int32_t index);
TILEWRIGHT_API int32_t tilewright_kernel_tensor_rank(const tilewright_kernel* kernel,
                                                     int32_t index);
/* Of a kernel from a text: the size of each axis of one of its tensors, by those whose `shape` is
 * not NULL. USAGE where they do not say it. */
TILEWRIGHT_API tilewright_status tilewright_kernel_tensor_shape(const tilewright_kernel* kernel,
                                                                const tilewright_tensor* tensors,
                                                                int32_t count, int32_t index,
                                                                int64_t* shape);
/* Numbers that a run of a kernel from a text takes beside its tensors, and the name of each. 0 and
 * NULL for the library's. */
TILEWRIGHT_API int32_t tilewright_kernel_scalar_count(const tilewright_kernel* kernel);
TILEWRIGHT_API const char* tilewright_kernel_scalar_name(const tilewright_kernel* kernel,
                                                         int32_t index);

/* How many variants the kernel's rules choose among for its options, by the sizes of a run: each is
 * built once, for all sizes. 0 for NULL. */
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

/* tilewright_kernel_run of numbers alone, for callers that would build the structs for each call:
 * for each tensor its address, the size of each axis, and the stride of each axis in elements.
 * Dtypes are the kernel's own. `count` is of all numbers. */
TILEWRIGHT_API tilewright_status tilewright_kernel_run_flat(const tilewright_kernel* kernel,
                                                            const int64_t* numbers, int32_t count,
                                                            void* stream);

/* Computes what the kernel means in float64, for checks of its gradients: at the tile level, by the
 * interpreter, with no result rounded. All tensors lie on the host. Those of floats hold doubles,
 * and their dtype is "f64". For kernels of one rank that were created for "interpreter"; else
 * USAGE. */
TILEWRIGHT_API tilewright_status tilewright_kernel_run_in_float64(const tilewright_kernel* kernel,
                                                                  const tilewright_tensor* tensors,
                                                                  int32_t count);

/* tilewright_kernel_run of a kernel from a text, with its scalars in their order. */
TILEWRIGHT_API tilewright_status tilewright_kernel_run_with_scalars(
    const tilewright_kernel* kernel, const tilewright_tensor* tensors, int32_t count,
    const double* scalars, int32_t scalar_count, void* stream);

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

/* The processes of one job, one for each rank, as docs/distributed.md has them: how they find each
 * other, wait for each other and learn that one has died. Nothing of it needs a GPU. The calls on a
 * group, but for its rank, size and lost ranks, are for one thread at a time, and all ranks do the
 * same ones in the same order. Statuses: USAGE for what the caller said, which names the rank and
 * the value, and UNAVAILABLE for ranks that did not come, have died or are silent, which names
 * them. */
typedef struct tilewright_group tilewright_group;

typedef struct tilewright_group_options {
  int32_t rank, size;  /* -1 both: the launcher or MPI says so */
  const char* address; /* of this machine, where ranks are on several; NULL: all are on this one */
  double patience;     /* seconds that each call waits for others; 0: 60 */
  double silence;      /* seconds behind which a silent rank is taken for dead; 0: 10 */
} tilewright_group_options;

/* All ranks of the group return when all have come, by one of these. `options` NULL: rank -1, size
 * -1, and zeros. `*group` is NULL on failure. */
/* Rank 0 writes the file, and removes it when all have come. */
TILEWRIGHT_API tilewright_status tilewright_group_create_by_file(
    const char* path, const tilewright_group_options* options, tilewright_group** group);
/* Rank 0 listens there, and nowhere else. Who shows another token is turned away. */
TILEWRIGHT_API tilewright_status tilewright_group_create_by_socket(
    const char* address, int32_t port, const char* token, const tilewright_group_options* options,
    tilewright_group** group);
/* What torchrun or mpirun has said in the environment. */
TILEWRIGHT_API tilewright_status tilewright_group_create_by_environment(
    const tilewright_group_options* options, tilewright_group** group);
/* By the MPI that the process has loaded, else libmpi. */
TILEWRIGHT_API tilewright_status
tilewright_group_create_by_mpi(const tilewright_group_options* options, tilewright_group** group);

/* A store of keys and values that all ranks reach, such as PyTorch's. Each function returns 0, or
 * anything else where it fails. They are called by the thread that creates the group. */
typedef struct tilewright_store {
  void* context;
  int32_t (*set)(void* context, const char* key, const char* value, int64_t size);
  /* Of a key that is there: at most `room` bytes of its value, and its whole size. */
  int32_t (*get)(void* context, const char* key, char* value, int64_t room, int64_t* size);
  /* Until the key is there, at most so long. */
  int32_t (*wait)(void* context, const char* key, double seconds);
} tilewright_store;
/* Rank 0 sets `key`. */
TILEWRIGHT_API tilewright_status
tilewright_group_create_by_store(const tilewright_store* store, const char* key,
                                 const tilewright_group_options* options, tilewright_group** group);

/* In any order among the ranks; the others are told. What was made with the group keeps it. NULL is
 * allowed, and so is a group that was destroyed. */
TILEWRIGHT_API void tilewright_group_destroy(tilewright_group* group);

/* -1 for what is no group. */
TILEWRIGHT_API int32_t tilewright_group_rank(const tilewright_group* group);
TILEWRIGHT_API int32_t tilewright_group_size(const tilewright_group* group);

/* Returns when all ranks have come to the barrier of this name. */
TILEWRIGHT_API tilewright_status tilewright_group_barrier(tilewright_group* group,
                                                          const char* name);
/* Gives all ranks `size` bytes, at most 64 MiB. `data` and `sizes` have a place for each rank: what
 * it has given, valid until the group's next call of this. */
TILEWRIGHT_API tilewright_status tilewright_group_all_gather(tilewright_group* group,
                                                             const char* name, const void* own,
                                                             int64_t size, const void** data,
                                                             int64_t* sizes);
/* How many ranks are known to have died, and the first `room` of them, in the order in which they
 * were missed. -1 for what is no group. */
TILEWRIGHT_API int32_t tilewright_group_lost(const tilewright_group* group, int32_t* ranks,
                                             int32_t room);
/* UNAVAILABLE, with their names and `waiting_for`, if there are any or one has left. */
TILEWRIGHT_API tilewright_status tilewright_group_require_all(const tilewright_group* group,
                                                              const char* waiting_for);

/* Memory that every rank of one machine has, of the same size, and that all of them reach. */
typedef struct tilewright_symmetric tilewright_symmetric;

/* By all ranks, with the same bytes and name. `memory` is "host", which is zeros, or "gpu": that of
 * the GPU number `device`, which may hold anything. USAGE for sizes that differ and ranks on other
 * machines; UNAVAILABLE, in all ranks, where one has no room or does not reach another one's. */
TILEWRIGHT_API tilewright_status tilewright_symmetric_create(tilewright_group* group, int64_t bytes,
                                                             const char* name, const char* memory,
                                                             int32_t device,
                                                             tilewright_symmetric** symmetric);
/* No other rank is waited for. Work on a GPU that uses it has ended by then. NULL is allowed, and
 * so is one that was destroyed. */
TILEWRIGHT_API void tilewright_symmetric_destroy(tilewright_symmetric* symmetric);
/* Of each rank's; 0 for what is none. */
TILEWRIGHT_API int64_t tilewright_symmetric_size(const tilewright_symmetric* symmetric);
/* The first byte of that rank's, in this process: for kernels and copies where it is a GPU's. NULL
 * where there is no such rank. */
TILEWRIGHT_API void* tilewright_symmetric_address(const tilewright_symmetric* symmetric,
                                                  int32_t rank);
/* By all ranks, in the same order: the offset, the same in all of them, of so many bytes that
 * nobody has yet, at a multiple of `alignment`, a power of two. Nothing is given back. */
TILEWRIGHT_API tilewright_status tilewright_symmetric_allocate(tilewright_symmetric* symmetric,
                                                               int64_t bytes, const char* name,
                                                               int64_t alignment, int64_t* offset);
/* Copies `bytes` from and to this process's memory, at `offset` of that rank's. Done at return. */
TILEWRIGHT_API tilewright_status tilewright_symmetric_write(const tilewright_symmetric* symmetric,
                                                            int32_t rank, int64_t offset,
                                                            const void* from, int64_t bytes);
TILEWRIGHT_API tilewright_status tilewright_symmetric_read(const tilewright_symmetric* symmetric,
                                                           int32_t rank, int64_t offset, void* to,
                                                           int64_t bytes);

/* An operation over ranks, such as gemm_reduce_scatter, for the processes of a group: by all of
 * them, each with another GPU as `device`. It takes the tensors of its own rank alone, which lie
 * alike in all ranks. `options` as of tilewright_kernel_create; `ranks` is the group's size.
 * Besides the statuses of that, UNAVAILABLE for ranks that have died. tilewright_kernel_run, by all
 * ranks in the same order, then queues its rank's part on its stream. The first run of other sizes
 * waits for all ranks. */
TILEWRIGHT_API tilewright_status tilewright_kernel_create_in_group(const char* name,
                                                                   const char* options,
                                                                   const tilewright_group* group,
                                                                   int32_t device,
                                                                   tilewright_kernel** kernel);

/* For each tensor of a run of these sizes, in `shared`, 1 where other ranks reach it: it must then
 * lie in symmetric memory, at the same place of it in all ranks. Else 0. Their `data` is not looked
 * at. USAGE for a kernel of one rank. */
TILEWRIGHT_API tilewright_status tilewright_kernel_shared_tensors(const tilewright_kernel* kernel,
                                                                  const tilewright_tensor* tensors,
                                                                  int32_t count, int32_t* shared);

/* By all ranks: returns when all of them have ended the runs of this kernel, whose latest stream is
 * still there. UNAVAILABLE for a rank that has died: a wait for the stream alone would not end
 * then. */
TILEWRIGHT_API tilewright_status tilewright_kernel_synchronize(const tilewright_kernel* kernel);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_C_API_H */
