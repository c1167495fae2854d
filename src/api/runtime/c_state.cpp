#include <algorithm>

#include "api/runtime/boundary.h"

namespace {

using namespace hone;
using namespace hone::c_api;

State& state_of(hone_state* s) { return required(s, "state")->it; }
const State& state_of(const hone_state* s) { return required(s, "state")->it; }

std::vector<const PlanState*> all_states(const State& s) {
  std::vector<const PlanState*> out;
  for (const auto& g : s.all_groups())
    for (const PlanState& one : g->states) out.push_back(&one);
  return out;
}

std::size_t bytes_of(DType dtype, const std::vector<std::int64_t>& dims) {
  std::size_t bytes = static_cast<std::size_t>(byte_size(dtype));
  for (std::int64_t n : dims) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

void check_bytes(const PlanState& s, std::size_t wanted, std::size_t bytes) {
  if (bytes != wanted)
    throw UserError("state '", s.name, "' has ", wanted, " bytes, but the memory has ", bytes);
}

// The sizes of a value with that many bytes.
std::vector<std::int64_t> dims_for(const PlanState& s, std::size_t bytes) {
  std::vector<std::int64_t> dims;
  for (const Dim& d : s.type.shape.dims) dims.push_back(d.number());
  if (s.open_axis) {
    dims[*s.open_axis] = 1;
    const std::size_t row = bytes_of(s.type.dtype, dims);
    dims[*s.open_axis] = row > 0 ? static_cast<std::int64_t>(bytes / row) : 0;
  }
  check_bytes(s, bytes_of(s.type.dtype, dims), bytes);
  return dims;
}

}  // namespace

extern "C" {

hone_status hone_state_create(hone_executable* e, const char* const* groups, std::int32_t count,
                              hone_state** out) {
  return guarded([&] {
    *required(out, "hone_state_create: out") = nullptr;
    StateOptions options;
    if (count < 0) throw UserError("hone_state_create: count is ", count, ", expected 0 or more");
    if (count > 0) required(groups, "hone_state_create: groups");
    for (std::int32_t i = 0; i < count; ++i)
      options.groups.emplace_back(required(groups[i], "hone_state_create: a group"));
    *out = new hone_state{State(required(e, "executable")->it, options)};
  });
}
void hone_state_free(hone_state* s) { delete s; }

std::int32_t hone_state_count(const hone_state* s) {
  std::int32_t n = -1;
  guarded([&] { n = static_cast<std::int32_t>(all_states(state_of(s)).size()); });
  return n;
}
hone_status hone_state_info(const hone_state* s, std::int32_t i, hone_tensor_info* out) {
  return guarded([&] {
    const std::vector<const PlanState*> all = all_states(state_of(s));
    const PlanState& one = *all[checked_index(i, all.size(), "state")];
    describe(one.name, one.type, false, out);
    if (one.open_axis) out->dims[*one.open_axis] = -1;
  });
}

hone_status hone_state_read(const hone_state* s, const char* name, void* data, std::size_t bytes) {
  return guarded([&] {
    if (bytes > 0) required(data, "data");
    const Array value = state_of(s).read(required(name, "name"));
    check_bytes(state_of(s).state(name), value.bytes().size(), bytes);
    std::ranges::copy(value.bytes(), static_cast<std::byte*>(data));
  });
}
hone_status hone_state_write(hone_state* s, const char* name, const void* data, std::size_t bytes) {
  return guarded([&] {
    const PlanState& one = state_of(s).state(required(name, "name"));
    const std::vector<std::int64_t> dims = dims_for(one, bytes);
    if (bytes > 0) required(data, "data");
    const std::span given(static_cast<const std::byte*>(data), bytes);
    state_of(s).write(name, Array(one.type.dtype, dims, Storage(nullptr, given)));
  });
}
hone_status hone_state_dims(const hone_state* s, const char* name,
                            std::int64_t dims[HONE_MOST_AXES], std::int32_t* rank) {
  return guarded([&] {
    const std::vector<std::int64_t> now = state_of(s).dims(required(name, "name"));
    std::ranges::copy(now, required(dims, "dims"));
    *required(rank, "rank") = static_cast<std::int32_t>(now.size());
  });
}
hone_status hone_state_shorten(hone_state* s, const char* name, std::int64_t size) {
  return guarded([&] { state_of(s).shorten(required(name, "name"), size); });
}

hone_status hone_state_reset(hone_state* s) {
  return guarded([&] { state_of(s).reset(); });
}
hone_status hone_state_assign(hone_state* to, const hone_state* from) {
  return guarded([&] { state_of(to).assign(state_of(from)); });
}
hone_status hone_state_save(const hone_state* s, const char* path) {
  return guarded([&] { state_of(s).save(required(path, "path")); });
}
hone_status hone_state_load(hone_state* s, const char* path, const hone_rename* renames,
                            std::int32_t count) {
  return guarded([&] {
    StateLoading options;
    if (count < 0) throw UserError("hone_state_load: count is ", count, ", expected 0 or more");
    if (count > 0) required(renames, "hone_state_load: renames");
    for (std::int32_t i = 0; i < count; ++i)
      options.renamed.emplace(required(renames[i].tensor, "hone_rename: tensor"),
                              required(renames[i].state, "hone_rename: state"));
    state_of(s).load(required(path, "path"), options);
  });
}

hone_status hone_state_version(const hone_state* s, const char* group, std::uint64_t* out) {
  return guarded([&] {
    *required(out, "hone_state_version: out") = state_of(s).version(required(group, "group"));
  });
}
hone_status hone_state_is_torn(const hone_state* s, const char* group, std::int32_t* out) {
  return guarded([&] {
    *required(out, "hone_state_is_torn: out") = state_of(s).is_torn(required(group, "group"));
  });
}

}  // extern "C"
