/* Loads and runs plans from C, or from C++ without exceptions. Links no compiler. Every call that
 * can fail returns a status and leaves the reason in hone_last_error(). Handles belong to one
 * thread at a time, except hone_executable and hone_state (shared freely), hone_stop and hone_poll
 * (any thread).
 */
#ifndef HONE_C_H
#define HONE_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_EXPORT __attribute__((visibility("default")))

/* In C++, members that a designated initializer omits are zero, without a warning. */
#ifdef __cplusplus
#define HONE_ZERO \
  {               \
  }
#else
#define HONE_ZERO
#endif

typedef enum hone_status {
  HONE_OK = 0,
  HONE_ERROR_USER = 1,     /* the file, an argument or the machine: the text says what to do */
  HONE_ERROR_INTERNAL = 2, /* a defect of hone */
  HONE_STOPPED = 3,        /* hone_stop was called */
  HONE_DEADLINE = 4,       /* the deadline passed between two steps */
  HONE_OUT_OF_MEMORY = 5
} hone_status;

typedef enum hone_dtype {
  HONE_BOOL = 0,
  HONE_I8,
  HONE_I16,
  HONE_I32,
  HONE_I64,
  HONE_U8,
  HONE_U16,
  HONE_U32,
  HONE_U64,
  HONE_F16,
  HONE_BF16,
  HONE_F32,
  HONE_F64,
  /* One byte per element; types of fewer than 8 bits use its low bits. */
  HONE_I2,
  HONE_U2,
  HONE_I4,
  HONE_U4,
  HONE_F4E2M1,
  HONE_F8E4M3FN,
  HONE_F8E4M3FNUZ,
  HONE_F8E5M2,
  HONE_F8E5M2FNUZ,
  HONE_F8E8M0,
  HONE_TEXT /* a 64-bit number: see hone_text_number */
} hone_dtype;

typedef struct hone_executable hone_executable;
typedef struct hone_session hone_session;
typedef struct hone_state hone_state;
typedef struct hone_tensor hone_tensor;
/* Of the header dlpack.h, version 1: the caller includes his own. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Message of this thread's last failed call; never null. Valid until the next failure. */
HONE_EXPORT const char* hone_last_error(void);
HONE_EXPORT const char* hone_version(void);

/* Sends warnings to `sink` instead of stderr; null restores stderr. */
HONE_EXPORT void hone_set_log(void (*sink)(void* context, const char* text), void* context);

/* Elements of dtype text are numbers that stand for strings within this process. These two return
 * the number of a string, and the string of a known number. The string is valid until
 * hone_forget_texts, which frees all strings and invalidates their numbers. */
HONE_EXPORT hone_status hone_text_number(const char* text, size_t bytes, uint64_t* number);
HONE_EXPORT hone_status hone_text_of(uint64_t number, const char** text, size_t* bytes);
/* Must not be called during a run. */
HONE_EXPORT void hone_forget_texts(void);

/* Maps a plan file (.hone) into memory. On failure *out is null. */
HONE_EXPORT hone_status hone_load(const char* path, hone_executable** out);
/* The same for the bytes of a plan file in memory, which must stay as they are until the executable
 * and all its sessions are freed. Weights are used in place if `data` is aligned to 64 bytes. */
HONE_EXPORT hone_status hone_load_memory(const void* data, size_t bytes, hone_executable** out);
/* Another handle to the same executable; must be freed as well. */
HONE_EXPORT hone_status hone_executable_share(const hone_executable*, hone_executable** out);
/* May be called before the sessions are freed: they keep what they need. Null is allowed. */
HONE_EXPORT void hone_executable_free(hone_executable*);

enum { HONE_MOST_AXES = 16 };

/* An input or output. A size that is known only at run time is -1. */
typedef struct hone_tensor_info {
  const char* name;
  hone_dtype dtype;
  int32_t rank;
  int64_t dims[HONE_MOST_AXES];
  int32_t donated; /* inputs: an output may reuse its memory */
} hone_tensor_info;

/* The functions of a plan; a model's plan has one. For a null handle the count is -1. The name is
 * valid as long as the plan is loaded. */
HONE_EXPORT int32_t hone_entry_count(const hone_executable*);
HONE_EXPORT hone_status hone_entry_name(const hone_executable*, int32_t index, const char** out);

/* Of the first entry, without states. For a null handle these return -1 and set hone_last_error().
 */
HONE_EXPORT int32_t hone_input_count(const hone_executable*);
HONE_EXPORT int32_t hone_output_count(const hone_executable*);
HONE_EXPORT hone_status hone_input_info(const hone_executable*, int32_t index, hone_tensor_info*);
HONE_EXPORT hone_status hone_output_info(const hone_executable*, int32_t index, hone_tensor_info*);

/* The caller's threads: `run` calls body(arg, begin, end, thread) until [0, chunks) is covered,
 * each chunk once, with thread < threads, and returns when all chunks are done. */
typedef struct hone_pool {
  void* context HONE_ZERO;
  int32_t threads HONE_ZERO;
  void (*run)(void* context, int64_t chunks,
              void (*body)(void* arg, int64_t begin, int64_t end, int thread), void* arg) HONE_ZERO;
} hone_pool;

/* The caller's memory: aligned to 64 bytes; alloc returns null when it is out of memory. */
typedef struct hone_allocator {
  void* context HONE_ZERO;
  void* (*alloc)(void* context, size_t bytes)HONE_ZERO;
  void (*free)(void* context, void* memory, size_t bytes) HONE_ZERO;
} hone_allocator;

/* Memory of a plan's states: values that outlive runs, such as weights that are trained, or caches.
 * `count` groups of the plan; 0: all. Every state has its start value. Sessions that use it keep it
 * alive. All calls with a state may be made by any thread; they wait for runs that use it. */
HONE_EXPORT hone_status hone_state_create(hone_executable*, const char* const* groups,
                                          int32_t count, hone_state** out);
HONE_EXPORT void hone_state_free(hone_state*); /* null is allowed */
/* Names, dtypes and sizes; -1 along the axis of a state that grows. For a null handle the count is
 * -1. */
HONE_EXPORT int32_t hone_state_count(const hone_state*);
HONE_EXPORT hone_status hone_state_info(const hone_state*, int32_t index, hone_tensor_info*);
/* Sizes of a state now. */
HONE_EXPORT hone_status hone_state_dims(const hone_state*, const char* name,
                                        int64_t dims[HONE_MOST_AXES], int32_t* rank);
/* Copies one state, dense and row-major, from or to the caller's memory, which has exactly its
 * bytes. One that grows takes any size up to its capacity. */
HONE_EXPORT hone_status hone_state_read(const hone_state*, const char* name, void* data,
                                        size_t bytes);
HONE_EXPORT hone_status hone_state_write(hone_state*, const char* name, const void* data,
                                         size_t bytes);
/* Keeps the first `size` elements along the axis of a state that grows. */
HONE_EXPORT hone_status hone_state_shorten(hone_state*, const char* name, int64_t size);
HONE_EXPORT hone_status hone_state_reset(hone_state*); /* to the start values */
/* Copies all states of `from`, which must have the same groups. */
HONE_EXPORT hone_status hone_state_assign(hone_state* to, const hone_state* from);
/* A safetensors file; replaces it atomically. Loading changes nothing if the file lacks a state,
 * has one of another type, or a tensor that is no state. */
typedef struct hone_rename {
  const char* tensor; /* name in the file */
  const char* state;
} hone_rename;
HONE_EXPORT hone_status hone_state_save(const hone_state*, const char* path);
HONE_EXPORT hone_status hone_state_load(hone_state*, const char* path, const hone_rename* renames,
                                        int32_t count);
/* Number of updates of a group so far; and whether one ended after it began to write: runs and
 * reads are then refused until the group is reset, assigned or loaded. */
HONE_EXPORT hone_status hone_state_version(const hone_state*, const char* group, uint64_t* out);
HONE_EXPORT hone_status hone_state_is_torn(const hone_state*, const char* group, int32_t* out);

/* A tensor outside of plans, in the memory of a device or of the host: results that are bound to it
 * stay there as inputs of the next run, of any session. A handle; a session keeps the tensor that
 * is bound to it alive. Runs on a caller's stream that use a tensor must be finished, or be put in
 * order by events, before other runs and the calls below use it.
 *
 * Memory of the executable's first device: dense, and zero unless `uninitialized`. */
HONE_EXPORT hone_status hone_tensor_create(const hone_executable*, hone_dtype, const int64_t* dims,
                                           int32_t rank, int32_t uninitialized, hone_tensor** out);
/* Memory of the caller, which is not copied and must live as long as the handle and bindings of it.
 * Strides in elements; null: dense row-major. With strides, `data` is the element of index 0, and
 * `bytes` reach at least to the end of the last element. */
HONE_EXPORT hone_status hone_tensor_of_memory(hone_dtype, const int64_t* dims,
                                              const int64_t* strides, int32_t rank, void* data,
                                              size_t bytes, hone_tensor** out);
/* DLPack 1.x: takes the tensor over; its deleter is called once, when the handle is freed and no
 * session has it bound. A read-only one is refused as an output. On failure nothing is taken over.
 * On the host, or on an NVIDIA GPU of the executable. */
HONE_EXPORT hone_status hone_tensor_from_dlpack(const hone_executable*,
                                                struct DLManagedTensorVersioned*,
                                                hone_tensor** out);
/* A new object that keeps the memory, also when handles, sessions and executable are freed; free it
 * by its deleter. Devices other than the host's and NVIDIA GPUs have no addresses to give. */
HONE_EXPORT hone_status hone_tensor_to_dlpack(const hone_tensor*,
                                              struct DLManagedTensorVersioned** out);
/* The same for the form before version 1, which knows no read-only tensors. */
HONE_EXPORT hone_status hone_tensor_from_dlpack_unversioned(const hone_executable*,
                                                            struct DLManagedTensor*,
                                                            hone_tensor** out);
HONE_EXPORT hone_status hone_tensor_to_dlpack_unversioned(const hone_tensor*,
                                                          struct DLManagedTensor** out);
HONE_EXPORT void hone_tensor_free(hone_tensor*); /* null is allowed */

typedef struct hone_tensor_layout {
  hone_dtype dtype;
  int32_t rank;
  int64_t dims[HONE_MOST_AXES];
  int64_t strides[HONE_MOST_AXES]; /* in elements */
  size_t bytes;                    /* of all elements */
  int32_t is_read_only;
  const char* device; /* "host", or the device's name; valid as long as the tensor */
  void* data;         /* the element of index 0; null on devices without addresses */
} hone_tensor_layout;
HONE_EXPORT hone_status hone_tensor_describe(const hone_tensor*, hone_tensor_layout*);
/* Copies all elements, dense and row-major, from or to the caller's memory; `bytes` as above. */
HONE_EXPORT hone_status hone_tensor_read(const hone_tensor*, void* data, size_t bytes);
HONE_EXPORT hone_status hone_tensor_write(hone_tensor*, const void* data, size_t bytes);

/* Zero-initialize; zeros select the defaults. The data behind the pointers is copied. */
typedef struct hone_session_options {
  int32_t threads HONE_ZERO;         /* of its own pool; 0: all that are available */
  const int32_t* affinity HONE_ZERO; /* processors that these threads run on */
  int32_t affinity_count HONE_ZERO;
  const hone_pool* pool HONE_ZERO; /* used instead of a pool of its own */
  const hone_allocator* allocator HONE_ZERO;
  int64_t max_memory HONE_ZERO; /* bytes, limits hone_memory.peak; 0: 80 % of what is available */
  const char* entry HONE_ZERO;  /* the function to run; null: the plan's only one */
  hone_state* const* states HONE_ZERO; /* together with each group that the entry uses, once */
  int32_t state_count HONE_ZERO;
  /* 1: runs are submitted to `stream` and return. On an NVIDIA GPU a CUstream of the primary
   * context (null: the default stream), which must outlive the session; other devices have none.
   * Bound memory must live, and the host must not touch it, until hone_wait, which returns the
   * error of what failed. Runs wait by themselves for values by which the host decides. */
  int32_t on_stream HONE_ZERO;
  void* stream HONE_ZERO;
} hone_session_options;

HONE_EXPORT hone_status hone_session_create(hone_executable*,
                                            const hone_session_options* /* or null */,
                                            hone_session** out);
/* Waits for runs. Null is allowed. */
HONE_EXPORT void hone_session_free(hone_session*);

/* Inputs and outputs of the session's entry, without states. */
HONE_EXPORT int32_t hone_session_input_count(const hone_session*);
HONE_EXPORT int32_t hone_session_output_count(const hone_session*);
HONE_EXPORT hone_status hone_session_input_info(const hone_session*, int32_t index,
                                                hone_tensor_info*);
HONE_EXPORT hone_status hone_session_output_info(const hone_session*, int32_t index,
                                                 hone_tensor_info*);
/* The number of an input or output by its name. */
HONE_EXPORT hone_status hone_find_input(const hone_session*, const char* name, int32_t* index);
HONE_EXPORT hone_status hone_find_output(const hone_session*, const char* name, int32_t* index);

/* Binds dense row-major memory of the caller. Every run reads or writes it until other memory is
 * bound; it must live that long. `bytes` must be exactly the size given by dtype and dims. The
 * memory is used in place when aligned to 64 bytes, else copied. Fails when the dtype, the rank, a
 * size that the plan fixes, or `bytes` is wrong; the previous binding is then kept. */
HONE_EXPORT hone_status hone_bind_input(hone_session*, int32_t index, hone_dtype,
                                        const int64_t* dims, int32_t rank, const void* data,
                                        size_t bytes);
HONE_EXPORT hone_status hone_bind_output(hone_session*, int32_t index, hone_dtype,
                                         const int64_t* dims, int32_t rank, void* data,
                                         size_t bytes);
/* The same for a tensor, which the session keeps until other memory is bound. Memory of a device of
 * the plan is used in place when it is dense and aligned to 64 bytes, else copied. Also fails for
 * memory of a device that the plan does not use, and for read-only tensors that runs would write.
 */
HONE_EXPORT hone_status hone_bind_input_tensor(hone_session*, int32_t index, const hone_tensor*);
HONE_EXPORT hone_status hone_bind_output_tensor(hone_session*, int32_t index, const hone_tensor*);
/* Sizes of an output for the inputs bound now. A data-dependent size is given as its upper bound,
 * and the memory must be that large; the result is written densely at its start. */
HONE_EXPORT hone_status hone_output_dims(hone_session*, int32_t index, int64_t dims[HONE_MOST_AXES],
                                         int32_t* rank);
/* The memory that an output needs for the inputs bound now. With several data-dependent sizes, this
 * can be less than the product of hone_output_dims; then bind the output with one axis of bytes /
 * element size. */
HONE_EXPORT hone_status hone_output_bytes(hone_session*, int32_t index, size_t* bytes);
/* Sizes of an output of the last run. */
HONE_EXPORT hone_status hone_result_dims(hone_session*, int32_t index, int64_t dims[HONE_MOST_AXES],
                                         int32_t* rank);

/* Bytes. */
typedef struct hone_memory {
  size_t peak;                                    /* the most in use at the same time */
  size_t weights, prepared, file, plan, code;     /* shared by all sessions of the plan */
  size_t arena, scratch, staging, steps, library; /* of this session */
  size_t states;                                  /* of the states that it uses */
} hone_memory;
/* Memory that a run with the inputs bound now needs; known before the run. */
HONE_EXPORT hone_status hone_session_memory(hone_session*, hone_memory*);

/* Bytes that all runs so far copied between the host's memory and a device's own. */
typedef struct hone_traffic {
  uint64_t uploaded, downloaded;
} hone_traffic;
HONE_EXPORT hone_status hone_session_traffic(hone_session*, hone_traffic*);

HONE_EXPORT hone_status hone_run(hone_session*);
/* Runs in another thread: submit, then poll (1: finished) or wait (returns the run's status). */
HONE_EXPORT hone_status hone_submit(hone_session*);
HONE_EXPORT int32_t hone_poll(const hone_session*);
HONE_EXPORT hone_status hone_wait(hone_session*); /* also for runs on the caller's stream */
/* Order between streams, by a CUevent of the caller's on an NVIDIA GPU; other devices have none.
 * Later runs start after the event's point; and the event is recorded after all runs so far. */
HONE_EXPORT hone_status hone_wait_event(hone_session*, void* event);
HONE_EXPORT hone_status hone_record_event(hone_session*, void* event);

/* In milliseconds from now; negative: no deadline. Checked while the run waits for states, and
 * between steps up to the first that updates a state. */
HONE_EXPORT hone_status hone_set_deadline(hone_session*, int64_t milliseconds);
/* Stops the run in progress at its next step; later runs are not affected. */
HONE_EXPORT void hone_stop(hone_session*);

#ifdef __cplusplus
}
#endif
#endif
