#include "onednn_peer.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace hone::bench {

namespace {

#define HONE_PEER_FUNCTIONS(X)                  \
  X(dnnl_engine_create)                         \
  X(dnnl_stream_create)                         \
  X(dnnl_stream_wait)                           \
  X(dnnl_memory_desc_init_by_tag)               \
  X(dnnl_memory_desc_get_size)                  \
  X(dnnl_memory_create)                         \
  X(dnnl_matmul_desc_init)                      \
  X(dnnl_dilated_convolution_forward_desc_init) \
  X(dnnl_primitive_desc_create)                 \
  X(dnnl_primitive_desc_query_md)               \
  X(dnnl_primitive_create)                      \
  X(dnnl_primitive_execute)

struct Functions {
#define HONE_PEER_FIELD(name) decltype(&::name) name = nullptr;
  HONE_PEER_FUNCTIONS(HONE_PEER_FIELD)
#undef HONE_PEER_FIELD
};

void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) throw UserError("oneDNN: ", what, " failed with status ", status);
}

dnnl_memory_desc_t dense(const Functions& f, std::vector<dnnl_dim_t> dims) {
  dnnl_memory_desc_t out;
  check(f.dnnl_memory_desc_init_by_tag(&out, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                       dnnl_format_tag_any),
        "memory desc");
  return out;
}

}  // namespace

struct OneDnnPeer::State {
  Functions f;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;

  // Memory in the format that the primitive chose; its contents do not affect the speed.
  dnnl_memory_t memory(dnnl_primitive_desc_t pd, dnnl_query_t what) const {
    const dnnl_memory_desc_t* md = f.dnnl_primitive_desc_query_md(pd, what, 0);
    dnnl_memory_t out;
    std::size_t bytes = f.dnnl_memory_desc_get_size(md);
    void* data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    std::fill_n(static_cast<float*>(data), bytes / 4, 0.25f);
    check(f.dnnl_memory_create(&out, md, engine, data), "memory");
    return out;
  }

  std::function<void()> runner(const void* desc) const {
    dnnl_primitive_desc_t pd;
    check(f.dnnl_primitive_desc_create(&pd, desc, nullptr, engine, nullptr), "primitive desc");
    dnnl_primitive_t primitive;
    check(f.dnnl_primitive_create(&primitive, pd), "primitive");
    std::vector<dnnl_exec_arg_t> arguments = {{DNNL_ARG_SRC, memory(pd, dnnl_query_src_md)},
                                              {DNNL_ARG_WEIGHTS, memory(pd, dnnl_query_weights_md)},
                                              {DNNL_ARG_DST, memory(pd, dnnl_query_dst_md)}};
    return [this, primitive, arguments] {
      check(f.dnnl_primitive_execute(primitive, stream, static_cast<int>(arguments.size()),
                                     arguments.data()),
            "execute");
      f.dnnl_stream_wait(stream);
    };
  }
};

std::optional<OneDnnPeer> OneDnnPeer::open() {
  setenv("OMP_NUM_THREADS", "1", 1);
  void* library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  OneDnnPeer peer;
  peer.state_ = std::make_shared<State>();
  Functions& f = peer.state_->f;
#define HONE_PEER_LOAD(name)                                          \
  f.name = reinterpret_cast<decltype(f.name)>(dlsym(library, #name)); \
  if (!f.name) throw UserError("oneDNN: the library has no " #name);
  HONE_PEER_FUNCTIONS(HONE_PEER_LOAD)
#undef HONE_PEER_LOAD
  check(f.dnnl_engine_create(&peer.state_->engine, dnnl_cpu, 0), "engine");
  check(f.dnnl_stream_create(&peer.state_->stream, peer.state_->engine, dnnl_stream_default_flags),
        "stream");
  return peer;
}

std::function<void()> OneDnnPeer::matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Functions& f = state_->f;
  dnnl_memory_desc_t a = dense(f, {m, k}), b = dense(f, {k, n}), c = dense(f, {m, n});
  dnnl_matmul_desc_t desc;
  check(f.dnnl_matmul_desc_init(&desc, &a, &b, nullptr, &c), "matmul desc");
  return state_->runner(&desc);
}

std::function<void()> OneDnnPeer::convolution(const ConvShape& s) {
  const Functions& f = state_->f;
  std::vector<dnnl_dim_t> x = {1, s.in_channels}, y = {1, s.out_channels};
  std::vector<dnnl_dim_t> w = {s.out_channels / s.groups, s.in_channels / s.groups}, dilations;
  if (s.groups > 1) w.insert(w.begin(), s.groups);
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    x.push_back(s.in[i]);
    y.push_back(s.out(i));
    w.push_back(s.window[i]);
    dilations.push_back(s.dilations[i] - 1);
  }
  dnnl_memory_desc_t src = dense(f, x), weights = dense(f, w), dst = dense(f, y);
  dnnl_convolution_desc_t desc;
  check(f.dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights, nullptr, &dst,
            s.strides.data(), dilations.data(), s.pads.data(), s.pads.data()),
        "convolution desc");
  return state_->runner(&desc);
}

}  // namespace hone::bench
