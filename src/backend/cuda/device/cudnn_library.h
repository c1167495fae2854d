// cuDNN, opened at run time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "backend/cuda/device/cudnn_abi.h"

namespace hone::cudnn {

struct Library {
#define HONE_CUDNN_MEMBER(name, symbol, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  HONE_CUDNN_FUNCTIONS(HONE_CUDNN_MEMBER)
#undef HONE_CUDNN_MEMBER
  std::string failure, file;  // why it cannot be used; its path
};

// "9.19.0".
std::string version_text(std::size_t);
// Opened at the first call, together with its dependencies.
const Library& library();
// Throws UserError with the call, the error's name and what the library says about it.
void check(Status, std::string_view call);

}  // namespace hone::cudnn
