// The data of a model's tensors as Arrays: views into the files where the files store the elements
// unchanged. Does not know operators.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file.h"
#include "import/onnx/file/model.h"
#include "type/array.h"

namespace hone::onnx {

// The dtype for the format's type number; empty for complex types.
std::optional<DType> dtype_of(std::int32_t data_type);
// The format's type number for a dtype.
std::int32_t data_type_of(DType);
// "FLOAT", "STRING", ...; "type 99" for an unknown number.
std::string data_type_name(std::int32_t data_type);
// The number of a type by its name, in capital or small letters.
std::optional<std::int32_t> data_type_named(std::string_view name);

// The files with a model's tensors: the model file and the external files that tensors name.
class TensorFiles {
 public:
  // Tensors are views into `file`. External data is searched only in the file's directory.
  explicit TensorFiles(std::shared_ptr<const MappedFile> file, bool allow_links = false)
      : file_(std::move(file)),
        links_(allow_links ? MappedFile::Links::any : MappedFile::Links::contained) {}

  const MappedFile& file() const { return *file_; }
  // Returns the same storage each time for the same Tensor object, which must not move. Throws
  // UserError naming the tensor.
  Array array(const Tensor&);
  // Dense; at most 1 GiB.
  Array array(const SparseTensor&);

 private:
  Array read(const Tensor&);
  Array read_packed(const Tensor&, DType);
  Array decoded(const Tensor&, DType);
  Storage external(const Tensor&, std::uint64_t bytes, DType);
  const std::shared_ptr<const MappedFile>& open(std::string_view location);

  std::shared_ptr<const MappedFile> file_;
  MappedFile::Links links_;
  std::unordered_map<const Tensor*, Array> decoded_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> external_;
};

}  // namespace hone::onnx
