#include "api/runtime/boundary.h"

namespace hone::c_api {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

static_assert(static_cast<int>(DType::b1) == HONE_BOOL);
static_assert(static_cast<int>(DType::text) == HONE_TEXT && dtype_count == HONE_TEXT + 1);

TensorRef tensor(hone_dtype dtype, const std::int64_t* dims, std::int32_t rank, void* data,
                 std::size_t bytes) {
  const int number = dtype;
  if (number < HONE_BOOL || number > HONE_TEXT)
    throw UserError("dtype is ", number, ", expected a value of hone_dtype");
  if (rank < 0 || rank > HONE_MOST_AXES)
    throw UserError("rank is ", rank, ", expected 0 to ", int{HONE_MOST_AXES});
  if (rank > 0) required(dims, "dims");
  return {static_cast<DType>(number),
          {dims, static_cast<std::size_t>(rank)},
          {static_cast<std::byte*>(data), bytes}};
}

void describe(const std::string& name, const Type& type, bool is_donated, hone_tensor_info* out) {
  required(out, "hone_tensor_info");
  if (type.rank() > HONE_MOST_AXES)
    throw UserError("tensor '", name, "' has ", type.rank(), " axes, expected at most ",
                    int{HONE_MOST_AXES});
  *out = {name.c_str(), static_cast<hone_dtype>(type.dtype), type.rank(), {}, is_donated};
  for (int i = 0; i < type.rank(); ++i) out->dims[i] = type.shape[i].as_number().value_or(-1);
}

}  // namespace hone::c_api
