// Protobuf messages of the ONNX format, written field by field. The reader is
// import/onnx/file/model.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "type/type.h"

namespace hone::onnx {

// The bytes of one message.
class Message {
 public:
  void number(std::uint32_t field, std::int64_t value);
  void real(std::uint32_t field, float value);
  void bytes(std::uint32_t field, std::string_view content);
  void message(std::uint32_t field, const Message& m) { bytes(field, m.text()); }
  void append(const Message& m) { text_ += m.text_; }  // adds its fields to this message
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t);
  std::string text_;
};

Message attribute(std::string_view name, std::int64_t);
Message attribute(std::string_view name, float);
Message attribute(std::string_view name, std::string_view);
Message attribute(std::string_view name, std::span<const std::int64_t>);
Message attribute(std::string_view name, const Message& graph);
// A size that is not a number is named if it is a symbol, else left open.
Message value_info(std::string_view name, const Type&);

}  // namespace hone::onnx
