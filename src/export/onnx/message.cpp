#include "export/onnx/message.h"

#include <cstring>

#include "import/onnx/file/tensor.h"

namespace hone::onnx {

namespace {

Message typed_attribute(std::string_view name, std::int64_t type) {
  Message m;
  m.bytes(1, name);
  m.number(20, type);
  return m;
}

}  // namespace

void Message::varint(std::uint64_t n) {
  for (; n >= 128; n >>= 7) text_ += static_cast<char>(n | 128);
  text_ += static_cast<char>(n);
}

void Message::number(std::uint32_t field, std::int64_t value) {
  varint(std::uint64_t{field} << 3);
  varint(static_cast<std::uint64_t>(value));
}

void Message::real(std::uint32_t field, float value) {
  varint(std::uint64_t{field} << 3 | 5);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  text_.append(raw, sizeof raw);
}

void Message::bytes(std::uint32_t field, std::string_view content) {
  varint(std::uint64_t{field} << 3 | 2);
  varint(content.size());
  text_ += content;
}

Message attribute(std::string_view name, std::int64_t value) {
  Message m = typed_attribute(name, 2);
  m.number(3, value);
  return m;
}

Message attribute(std::string_view name, float value) {
  Message m = typed_attribute(name, 1);
  m.real(2, value);
  return m;
}

Message attribute(std::string_view name, std::string_view value) {
  Message m = typed_attribute(name, 3);
  m.bytes(4, value);
  return m;
}

Message attribute(std::string_view name, std::span<const std::int64_t> values) {
  Message m = typed_attribute(name, 7);
  for (std::int64_t v : values) m.number(8, v);
  return m;
}

Message attribute(std::string_view name, const Message& graph) {
  Message m = typed_attribute(name, 5);
  m.message(6, graph);
  return m;
}

Message value_info(std::string_view name, const Type& type) {
  Message shape;
  for (const Dim& d : type.shape.dims) {
    Message size;
    if (d.is_number())
      size.number(1, d.number());
    else if (d.is_symbol())
      size.bytes(2, d.name());
    shape.message(1, size);
  }
  Message tensor;
  tensor.number(1, data_type_of(type.dtype));
  tensor.message(2, shape);
  Message wrapped;
  wrapped.message(1, tensor);
  Message out;
  out.bytes(1, name);
  out.message(2, wrapped);
  return out;
}

}  // namespace hone::onnx
