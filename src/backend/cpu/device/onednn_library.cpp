#include "backend/cpu/device/onednn_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "backend/cpu/device/call.h"
#include "backend/cpu/isa/isa.h"
#include "base/error.h"
#include "base/hash.h"

namespace hone::onednn {

namespace {

constexpr const char* soname = "libdnnl.so.2";  // the headers fix the major version

void* symbol(void* from, const char* name) {
  if (void* address = ::dlsym(from, name)) return address;
  throw UserError("onednn: ", soname, " has no ", name, "; install libdnnl2 2.6 or later");
}

Library open_library() {
  void* handle = ::dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw UserError("onednn: ", ::dlerror(),
                    "; install libdnnl2, or make the plan with generated kernels alone");
  Library l = {};
#define HONE_DNNL_LOAD(name) \
  l.name = reinterpret_cast<decltype(l.name)>(symbol(handle, "dnnl_" #name));
  HONE_DNNL_FUNCTIONS(HONE_DNNL_LOAD)
#undef HONE_DNNL_LOAD
  // From the OpenMP runtime that the library depends on.
  l.omp_set_num_threads = reinterpret_cast<void (*)(int)>(symbol(handle, "omp_set_num_threads"));
  l.omp_get_max_threads = reinterpret_cast<int (*)()>(symbol(handle, "omp_get_max_threads"));
  if (cpu::allowed_isa() < cpu::Isa::v4)
    l.set_max_cpu_isa(cpu::allowed_isa() == cpu::Isa::v3 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41);
  require(l.engine_create(&l.engine, dnnl_cpu, 0), "dnnl_engine_create");
  return l;
}

std::string_view status_text(dnnl_status_t status) {
  switch (status) {
    case dnnl_success:
      return "success";
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "not implemented";
    case dnnl_runtime_error:
      return "run-time error";
    default:
      return "unexpected status";
  }
}

class Attributes {
 public:
  Attributes() {
    const Library& l = library();
    require(l.primitive_attr_create(&attr_), "dnnl_primitive_attr_create");
    require(l.primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user),
            "dnnl_primitive_attr_set_scratchpad_mode");
  }
  ~Attributes() { library().primitive_attr_destroy(attr_); }
  Attributes(const Attributes&) = delete;
  const_dnnl_primitive_attr_t get() const { return attr_; }

 private:
  dnnl_primitive_attr_t attr_ = nullptr;
};

}  // namespace

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

namespace {

// The directories that the loader searches, in order; its cache of /etc/ld.so.conf comes between
// LD_LIBRARY_PATH and the standard directories.
std::string searched_directories() {
  void* self = ::dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size;
  if (!self || ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return "the standard directories";
  std::vector<std::max_align_t> space(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* info = new (space.data()) Dl_serinfo(size);
  if (::dlinfo(self, RTLD_DI_SERINFO, info) != 0) return "the standard directories";
  std::string out;
  for (unsigned i = 0; i < info->dls_cnt; ++i)
    out += cat(i ? ", " : "", info->dls_serpath[i].dls_name);
  return out;
}

}  // namespace

LibraryStatus library_status() {
  LibraryStatus out{.name = "onednn"};
  try {
    const Library& l = library();
    const dnnl_version_t* v = l.version();
    out.version = cat(v->major, ".", v->minor, ".", v->patch);
    Dl_info where;
    if (::dladdr(reinterpret_cast<const void*>(l.version), &where) != 0) out.file = where.dli_fname;
  } catch (const UserError& e) {
    out.failure = cat(e.what(), "; looked for ", soname, " in ", searched_directories());
    out.hint = "apt-get install libdnnl2; without it plans use generated kernels alone";
  }
  return out;
}

void require(dnnl_status_t status, std::string_view call) {
  if (status != dnnl_success)
    throw UserError("onednn: ", call, " failed: ", status_text(status), " (", status, ")");
}

SingleThread::SingleThread() : before_(library().omp_get_max_threads()) {
  if (before_ != 1) library().omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (before_ != 1) library().omp_set_num_threads(before_);
}

namespace {

// oneDNN refuses overlapping strides, and also checks the strides of axes of size 1, which are
// arbitrary in a view. Moves such an axis outwards.
std::vector<std::int64_t> settled_strides(const std::vector<std::int64_t>& dims,
                                          std::vector<std::int64_t> strides) {
  std::int64_t extent = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1) extent = std::max(extent, strides[i] * dims[i]);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) continue;
    bool is_settled = strides[i] > 0;
    for (std::size_t j = 0; j < dims.size(); ++j)
      is_settled &= dims[j] <= 1 || strides[i] <= strides[j] || strides[i] >= strides[j] * dims[j];
    if (!is_settled) strides[i] = extent;
  }
  return strides;
}

}  // namespace

dnnl_memory_desc_t memory_desc(const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& strides) {
  dnnl_memory_desc_t d;
  require(library().memory_desc_init_by_strides(&d, static_cast<int>(dims.size()), dims.data(),
                                                dnnl_f32, settled_strides(dims, strides).data()),
          "dnnl_memory_desc_init_by_strides");
  return d;
}

dnnl_memory_desc_t any_desc(const std::vector<std::int64_t>& dims) {
  dnnl_memory_desc_t d;
  std::memset(&d, 0, sizeof d);
  d.ndims = static_cast<int>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) d.dims[i] = d.padded_dims[i] = dims[i];
  d.data_type = dnnl_f32;
  d.format_kind = dnnl_format_kind_any;
  return d;
}

std::size_t byte_size(const dnnl_memory_desc_t& d) { return library().memory_desc_get_size(&d); }

std::int64_t fingerprint(const dnnl_memory_desc_t& d) {
  std::uint64_t h = mix(d.ndims, d.data_type);
  const auto add = [&](std::int64_t n) { h = mix(h, static_cast<std::uint64_t>(n)); };
  add(d.format_kind);
  add(d.offset0);
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  for (int i = 0; i < d.ndims; ++i) {
    add(d.dims[i]);
    add(d.padded_dims[i]);
    if (d.format_kind == dnnl_blocked) add(b.strides[i]);
  }
  if (d.format_kind == dnnl_blocked)
    for (int i = 0; i < b.inner_nblks; ++i) add(b.inner_blks[i]), add(b.inner_idxs[i]);
  return static_cast<std::int64_t>(h >> 1);
}

std::shared_ptr<const Primitive> Primitive::from(dnnl_primitive_desc_t desc) {
  std::shared_ptr<Primitive> p(new Primitive);
  p->desc_ = desc;
  const char* text = nullptr;
  library().primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &text);
  if (text) p->implementation_ = text;
  require(library().primitive_create(&p->primitive_, desc), "dnnl_primitive_create");
  return p;
}

std::shared_ptr<const Primitive> Primitive::make(const_dnnl_op_desc_t op) {
  const SingleThread single;
  const Attributes attributes;
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status =
      library().primitive_desc_create(&desc, op, attributes.get(), library().engine, nullptr);
  if (status == dnnl_unimplemented) return nullptr;
  require(status, "dnnl_primitive_desc_create");
  return from(desc);
}

std::shared_ptr<const Primitive> Primitive::reorder(const dnnl_memory_desc_t& from_desc,
                                                    const dnnl_memory_desc_t& to_desc) {
  const SingleThread single;
  const Attributes attributes;
  dnnl_primitive_desc_t desc = nullptr;
  require(library().reorder_primitive_desc_create(&desc, &from_desc, library().engine, &to_desc,
                                                  library().engine, attributes.get()),
          "dnnl_reorder_primitive_desc_create");
  return from(desc);
}

Primitive::~Primitive() {
  if (primitive_) library().primitive_destroy(primitive_);
  if (desc_) library().primitive_desc_destroy(desc_);
}

dnnl_memory_desc_t Primitive::desc(dnnl_query_t what) const {
  const dnnl_memory_desc_t* d = library().primitive_desc_query_md(desc_, what, 0);
  return d ? *d : dnnl_memory_desc_t{};
}

Piece::Piece() {
  require(library().stream_create(&stream_, library().engine, dnnl_stream_default_flags),
          "dnnl_stream_create");
}

Piece::~Piece() {
  for (const Execution& e : executions_)
    for (const dnnl_exec_arg_t& a : e.arguments) library().memory_destroy(a.memory);
  if (stream_) library().stream_destroy(stream_);
}

Piece::Piece(Piece&& other) noexcept
    : executions_(std::exchange(other.executions_, {})),
      stream_(std::exchange(other.stream_, nullptr)),
      relu_(other.relu_),
      relu_desc_(other.relu_desc_),
      scratch_bytes_(other.scratch_bytes_) {}

std::int64_t Piece::reserve(std::size_t bytes) {
  const std::size_t at = scratch_bytes_;
  scratch_bytes_ += (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  return static_cast<std::int64_t>(at);
}

void Piece::begin(std::shared_ptr<const Primitive> primitive) {
  const dnnl_memory_desc_t scratchpad = primitive->desc(dnnl_query_scratchpad_md);
  executions_.push_back({std::move(primitive), {}, {}});
  add(DNNL_ARG_SCRATCHPAD, scratchpad, in_scratch, reserve(byte_size(scratchpad)));
}

void Piece::add(int argument, const dnnl_memory_desc_t& desc, std::size_t operand,
                std::int64_t offset) {
  dnnl_memory_t memory = nullptr;
  require(library().memory_create(&memory, &desc, library().engine, DNNL_MEMORY_NONE),
          "dnnl_memory_create");
  executions_.back().arguments.push_back({argument, memory});
  executions_.back().windows.push_back({operand, offset});
}

void Piece::add_relu(const dnnl_memory_desc_t& desc, std::size_t operand, std::int64_t offset) {
  relu_ = Window{operand, offset};
  relu_desc_ = desc;
}

std::byte* Piece::Window::in(void* const* operands, void* scratch) const {
  return static_cast<std::byte*>(operand == in_scratch ? scratch : operands[operand]) + offset;
}

namespace {

// Rows are the dense innermost axes, merged.
void relu_on_window(float* data, const dnnl_memory_desc_t& window) {
  struct Axis {
    std::int64_t size, stride;
  } axes[DNNL_MAX_NDIMS];
  int rank = 0;
  for (int i = 0; i < window.ndims; ++i) {
    const Axis axis{window.dims[i], window.format_desc.blocking.strides[i]};
    if (axis.size == 1) continue;
    int at = rank++;
    for (; at > 0 && axes[at - 1].stride > axis.stride; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  std::int64_t run = 1;
  int outer = 0;
  for (; outer < rank && axes[outer].stride == run; ++outer) run *= axes[outer].size;
  std::int64_t rows = 1;
  for (int i = outer; i < rank; ++i) rows *= axes[i].size;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row;
    float* at = data;
    for (int i = outer; i < rank; ++i) {
      at += rest % axes[i].size * axes[i].stride;
      rest /= axes[i].size;
    }
    for (std::int64_t i = 0; i < run; ++i) at[i] = at[i] < 0 ? 0 : at[i];
  }
}

}  // namespace

void Piece::run(void* const* operands, void* scratch) const {
  const SingleThread single;
  for (const Execution& e : executions_) {
    for (std::size_t i = 0; i < e.arguments.size(); ++i)
      library().memory_set_data_handle(e.arguments[i].memory, e.windows[i].in(operands, scratch));
    require(library().primitive_execute(e.primitive->get(), stream_,
                                        static_cast<int>(e.arguments.size()), e.arguments.data()),
            "dnnl_primitive_execute");
  }
  if (relu_) relu_on_window(reinterpret_cast<float*>(relu_->in(operands, scratch)), relu_desc_);
}

}  // namespace hone::onednn
