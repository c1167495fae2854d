#include "api/runtime/boundary.h"

namespace hone::c_api {

std::string& last_error() {
  thread_local std::string text;
  return text;
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
